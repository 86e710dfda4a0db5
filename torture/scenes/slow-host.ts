/**
 * Many small WRITEs and SENDs to and from a host whose memory accepts writes slowly, and few at a time: completions of both sides fill one fifo of
 * the device after the other, and all arrive in order.
 *
 *     posts ══► wire ══► completions ─► fifos, full ──(1 of some microseconds)──► host
 */

import { drawLink } from './few-credits.ts';
import type { Draft, Draws, Side, Stage } from './language/index.ts';
import { connect, READ, SEND, scene, times, WRITE } from './language/index.ts';

interface Args {
  readonly qpCount: number;
  /** Opcodes of each QP at each side, one after the other; READs are as long as the whole area. */
  readonly opcodes: readonly number[];
  readonly lengthBytes: number;
}

const areaBytes = 4096;
/** ID of receives; a completion of a request has its number. */
const receiveId = -1;

function draw(random: Draws): Draft<Args> {
  const qpCount = 1 + random.below(2);
  const kinds = random.oneOf([[WRITE], [SEND], [WRITE, SEND]]);
  const readShare = random.chance(0.3) ? 0.05 : 0;
  const opcodes = times(20 + random.below(20), () => (random.chance(readShare) ? READ : random.oneOf(kinds)));
  const lengthBytes = 1 + random.below(random.chance(0.7) ? 64 : 300);
  const writeLatencyPs = 200_000 + random.below(1_500_000);
  return {
    args: { qpCount, opcodes, lengthBytes },
    set: {
      ...{ 'host.memory.sizeMib': 64, ...drawLink(random) },
      'pcie.rootComplex.writeLatencyPs': writeLatencyPs,
      'pcie.rootComplex.readLatencyPs': writeLatencyPs + random.below(1_000_000),
      'pcie.rootPort.postedHeaders': 1 + random.below(4),
    },
  };
}

async function player(stage: Stage<Args>): Promise<void> {
  const { qpCount, opcodes, lengthBytes } = stage.args;
  const sends = opcodes.filter((opcode) => opcode === SEND).length;
  const count = qpCount * (opcodes.length + sends);
  const cap = { maxSendWr: opcodes.length, maxRecvWr: Math.max(1, sends) };
  const beforeReady = (early: Side): void => {
    for (const qp of early.qps.keys())
      for (let left = sends; left > 0; left--) early.receive(receiveId, { lengthBytes: areaBytes, qp });
  };
  const side = await connect(stage, { areaBytes, qpCount, cqEntries: count, cap, beforeReady });
  for (const [at, opcode] of opcodes.entries())
    for (let qp = 0; qp < qpCount; qp++) {
      const span = opcode === READ ? { lengthBytes: areaBytes } : { offset: at, lengthBytes };
      const error = side.post(at * qpCount + qp, opcode, { ...span, qp });
      if (error !== 0) stage.accuse(`request ${at} of QP ${qp} was refused: ${error}`);
    }
  const ended = await side.completions(count);
  stage.judgeWell(ended, count);
  for (let qp = 0; qp < qpCount; qp++) {
    const own = ended.filter(({ id }) => id !== receiveId && id % qpCount === qp);
    if (own.some(({ id }, at) => id !== at * qpCount + qp))
      stage.accuse(`completions of QP ${qp} did not come in the order of its requests`);
  }
  await stage.meet('over');
}

export const slowHost = scene({
  about: 'completions of many small requests pile up in front of a host that takes writes slowly',
  draw,
  programs: [player, player],
});
