/** The wires of the IBTA transport: for each block, the neighbours that it calls. README.md draws them. */
import type { Wires } from '../../../sim/index.ts';
import type { EngineBlocks } from '../transport/index.ts';
import type { IbtaBlocks } from './ibta-blocks.ts';

export const ibtaWires = (b: IbtaBlocks, engines: EngineBlocks): Wires<IbtaBlocks> => ({
  loopback: { transmitter: b.transmitter, receiver: b.receiver },
  reorder: { receiver: b.receiver, responses: b.responses },
  laneGate: { scheduler: engines.scheduler, responses: b.responses },
  transmitter: { requester: engines.requests, responses: b.responses, errors: engines.errors },
  responses: {
    transmitter: b.transmitter,
    receives: engines.receives,
    writer: engines.writer,
    errors: engines.errors,
  },
  receiver: {
    writer: engines.writer,
    responder: b.responder,
    acknowledgements: b.acknowledgements,
    datagrams: b.datagrams,
    notificationPoint: b.notificationPoint,
    reactionPoint: b.reactionPoint,
  },
  notificationPoint: { transmitter: b.transmitter },
  roceLink: {
    transmitter: b.transmitter,
    frameTransmitter: engines.frameTransmitter,
    receiver: b.receiver,
    frameReceiver: engines.frameReceiver,
  },
  timers: { acknowledgements: b.acknowledgements },
  ibtaRequests: { timers: b.timers, ends: engines.ends },
  acknowledgements: {
    completion: engines.completion,
    scheduler: engines.scheduler,
    timers: b.timers,
    writer: engines.writer,
    ends: engines.ends,
  },
  datagrams: { scatter: engines.scatter, completions: engines.completions, errors: engines.errors },
  responder: {
    scatter: engines.scatter,
    responses: b.responses,
    completions: engines.completions,
    keys: engines.keys,
    errors: engines.errors,
  },
});
