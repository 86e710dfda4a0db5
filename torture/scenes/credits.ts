/**
 * Messages under end-to-end flow control, over a long cable: the receiver posts receives again well before the sender learns of the credits. The
 * sender sends only with credits, except one message when none is in flight, so the receiver refuses no message (IBTA 9.7.7.2).
 */
import type { Draft, Draws, Played, Side, Stage } from './language/index.ts';
import { connect, psPerNs, psPerUs, SEND, scene } from './language/index.ts';

interface Args {
  /** Receives that are posted at once, and again when all of them are used. */
  readonly receives: number;
  readonly batches: number;
  readonly lengthBytes: number;
}

function draw(random: Draws): Draft<Args> {
  const args = {
    receives: 1 + random.below(14),
    batches: 2 + random.below(4),
    lengthBytes: 1 + random.below(200),
  };
  // The cable takes at least 10 µs; a receiver consumes some of the messages meanwhile.
  return { args, set: { 'wire.cableMetres': 3000 + random.below(5000) } };
}

const patience = { napPs: 200 * psPerNs, patiencePs: 50_000 * psPerUs };
const countOf = ({ receives, batches }: Args): number => receives * batches;

/** Sends one message, and all others once it has credits. */
async function sender(stage: Stage<Args>): Promise<void> {
  const { lengthBytes } = stage.args;
  const count = countOf(stage.args);
  const side = await connect(stage, { areaBytes: lengthBytes, cap: { maxSendWr: count } });
  side.post(0, SEND, { lengthBytes });
  const first = await side.watch(1, patience);
  for (let id = 1; id < count; id++) side.post(id, SEND, { lengthBytes });
  stage.judgeWell([...first, ...(await side.watch(count - 1, patience))], count);
  await stage.meet('over');
}

/** Posts receives again as soon as all are used. */
async function receiver(stage: Stage<Args>): Promise<void> {
  const { receives, batches, lengthBytes } = stage.args;
  const beforeReady = (side: Side): void => {
    for (let id = 0; id < receives; id++) side.receive(id, { lengthBytes });
  };
  const side = await connect(stage, { areaBytes: lengthBytes, cap: { maxRecvWr: receives }, beforeReady });
  for (let batch = 0; batch < batches; batch++) {
    stage.judgeWell(await side.watch(receives, patience), receives);
    if (batch < batches - 1) beforeReady(side);
  }
  await stage.meet('over');
}

function judge({ report }: Played<Args, unknown>): string[] {
  const refused = report.nodes[1]!.hca.transport['rnrNakSent'] ?? 0;
  return refused === 0
    ? []
    : [
        `${refused} RNR NAKs, though receives were advertised, or posted before the sender could learn of them`,
      ];
}

export const credits = scene({
  about: 'more messages than receives over a long cable: what is sent is promised',
  cable: 'infiniband',
  draw,
  programs: [sender, receiver],
  judge,
});
