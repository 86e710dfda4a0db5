/**
 * Traffic of all kinds in both directions, with losses, is played twice: normally, and in epochs so short that clocks are set back in mid-traffic,
 * or with each host in its own thread. Programs observe the same at the same instants, and the reports are equal
 * (docs/explanation/architecture.md); all requests succeed.
 */
import type { Draft, Draws, Request, Stage } from './language/index.ts';
import { connect, psPerUs, READ, SEND, scene, Traffic, times, WRITE } from './language/index.ts';

interface Args {
  readonly qpCount: number;
  readonly timeoutCode: number;
  /** Requests by program, each with its distance from the previous one. */
  readonly requests: readonly (readonly (Request & { readonly afterNs: number })[])[];
}

const longestBytes = 16_384;

function draw(random: Draws): Draft<Args> {
  const requests = times(2, () => {
    const gapNs = random.oneOf([0, 500, 5000]);
    return times(5 + random.below(24), () => ({
      opcode: random.oneOf([WRITE, READ, SEND]),
      lengthBytes: random.chance(0.5) ? random.below(300) : random.below(longestBytes),
      afterNs: gapNs === 0 ? 0 : random.below(gapNs),
    }));
  });
  const args = { qpCount: 1 + random.below(3), timeoutCode: 8 + random.below(4), requests };
  const loss = () => ({ packet: 'lost' as const, nth: 1 + random.below(60), node: random.below(2) });
  const faults = random.chance(0.8) ? times(1 + random.below(4), loss) : [];
  const isThreaded = random.chance(0.05);
  return {
    args,
    set: random.maybe(0.3, () => ({ 'pcie.link.generation': 1, 'pcie.link.lanes': 1 })),
    hasDrawnHardware: random.chance(0.4),
    faults,
    climate: 'lossy',
    again: {
      partition: isThreaded ? 'per-device' : 'single',
      shuffleSeed: undefined,
      epochPs: Math.round((3 + random.unit() * 2 ** random.below(6)) * psPerUs),
    },
  };
}

/**
 * Both programs do the same. @returns the requests' ends and their times, for the comparison with the second play
 */
async function player(stage: Stage<Args>): Promise<(readonly [id: number, atPs: number])[]> {
  const { qpCount, timeoutCode, requests } = stage.args;
  const byNode = requests.map((all) => all.map((request, id) => ({ ...request, qp: id % qpCount })));
  const traffic = new Traffic(stage.node, byNode);
  const side = await connect(stage, {
    ...{ areaBytes: traffic.areaBytes, qpCount, attributes: { timeoutCode } },
    cap: { maxSendWr: 64, maxRecvWr: 64 },
    beforeReady: (early) => traffic.receiveAll(early),
  });
  for (const [id, { afterNs }] of requests[stage.node]!.entries()) {
    if (afterNs > 0) await stage.sleepNs(afterNs);
    traffic.post(side, id);
  }
  const ended = await side.completions(traffic.dueCount);
  stage.judgeWell(ended, traffic.dueCount);
  await stage.meet('over');
  return ended.map(({ id, atPs }) => [id, atPs]);
}

export const shortEpochs = scene({
  about:
    'traffic with losses is played once more, in epochs so short that clocks are set back in the middle of it',
  draw,
  programs: [player, player],
});
