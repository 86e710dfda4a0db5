/**
 * Messages by the credits of the receiver, over a cable so long that it has posted receives again before the sender can learn of
 * it: nothing is sent that is not promised, but for one message when nothing is under way, and so nothing is refused (IBTA
 * 9.7.7.2).
 */
import { psPerNs, psPerUs } from '../../base/index.ts';
import { barrier } from '../../experiments/workloads/index.ts';
import type { JsonValue, ProgramContext } from '../../machine/index.ts';
import type { Random } from '../../sim/index.ts';
import { IBV_WC_SUCCESS, IBV_WR_SEND, postRecv } from '../../userlib/index.ts';
import { watchCompletions } from './observing.ts';
import { connectWithPeer, type Ended, leave, post, requestOf, type Side } from './pair.ts';
import type { Scene, SceneDraft, ScenePlayed } from './scene.ts';

interface Args {
  /** Receives that are posted at once, and again when all of them are used. */
  readonly receives: number;
  readonly batches: number;
  readonly lengthBytes: number;
}

function draw(random: Random): SceneDraft {
  const args: Args = {
    receives: 1 + random.below(14),
    batches: 2 + random.below(4),
    lengthBytes: 1 + random.below(200),
  };
  // 10 µs and more from one end to the other; a receiver takes some.
  return {
    args: { ...args },
    set: { 'wire.cableMetres': 3000 + random.below(5000) },
    hasDrawnHardware: false,
  };
}

const patience = { napPs: 200 * psPerNs, patiencePs: 50_000 * psPerUs };
const countOf = ({ receives, batches }: Args): number => receives * batches;

/** Sends one message, and all others once it has credits. */
export async function sender(program: ProgramContext): Promise<JsonValue> {
  const args = program.args as unknown as Args;
  const { lengthBytes } = args;
  const count = countOf(args);
  const side = await connectWithPeer(program, { areaBytes: lengthBytes, cap: { maxSendWr: count } });
  const send = (id: number): void => {
    post(side.qps[0]!, requestOf(side, id, IBV_WR_SEND, { offset: 0, lengthBytes }));
  };
  send(0);
  const ended = await watchCompletions(side, 1, patience);
  for (let id = 1; id < count; id++) send(id);
  ended.push(...(await watchCompletions(side, count - 1, patience)));
  await barrier(program, 'over');
  await leave(side);
  return { ended } as unknown as JsonValue;
}

/** Posts receives again as soon as all are used. */
export async function receiver(program: ProgramContext): Promise<JsonValue> {
  const args = program.args as unknown as Args;
  const { receives, batches, lengthBytes } = args;
  const fill = ({ qps, area }: Omit<Side, 'peer'>): void => {
    for (let id = 0; id < receives; id++) {
      const sgList = [{ addr: area.address, length: lengthBytes, lkey: area.region.lkey }];
      postRecv(qps[0]!, { wrId: id, sgList, numSge: 1 }, { wr: null, index: 0 });
    }
  };
  const side = await connectWithPeer(program, {
    areaBytes: lengthBytes,
    cap: { maxRecvWr: receives },
    beforeReady: fill,
  });
  let came = 0;
  for (let batch = 0; batch < batches; batch++) {
    came += (await watchCompletions(side, receives, patience)).length;
    if (batch < batches - 1) fill(side);
  }
  await barrier(program, 'over');
  await leave(side);
  return { came };
}

export const credits: Scene = {
  name: 'credits',
  about: 'more messages than receives over a long cable: what is sent is promised',
  module: import.meta.url,
  cable: 'infiniband',
  programs: [
    { node: 0, exportName: 'sender' },
    { node: 1, exportName: 'receiver' },
  ],
  draw,
  judge({ args, results, report }: ScenePlayed): string[] {
    const count = countOf(args as unknown as Args);
    const [{ ended }, { came }] = results as unknown as [{ ended: Ended[] }, { came: number }];
    const found: string[] = [];
    if (ended.length !== count || ended.some(({ status }) => status !== IBV_WC_SUCCESS) || came !== count)
      found.push(`${ended.length} of ${count} messages ended and ${came} came, not all of them well`);
    const refused = report.nodes[1]!.hca.transport['rnrNakSent'] ?? 0;
    if (refused > 0)
      found.push(
        `${refused} RNR NAKs, though receives were advertised, or posted before the sender could learn of them`,
      );
    return found;
  },
};
