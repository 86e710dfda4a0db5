/** Answers of the responder: since when each could have been on the cable. */
import type { Hca } from '../../../hw/hca/index.ts';
import type { MachineConfig } from '../../profile/index.ts';
import { around } from '../around.ts';
import type { Stream } from '../stream.ts';

/** Records each answer when it leaves its queue, at the instant from which its first byte could have left. */
export function watchAnswers(
  stream: Stream,
  { ibta, domain }: Hca,
  { transmitBytesPerCycle }: Pick<MachineConfig['hca'], 'transmitBytesPerCycle'>,
): void {
  if (ibta === undefined || !stream.has('packets')) return;
  const queue = ibta.parts.responsePackets;
  const track = stream.track('responder', 'answers');
  /** The cycle at which the last payload of each packet arrived. */
  const arrivedCycles = new Float64Array(queue.capacity);
  around(queue, 'open', (open) => (pair, generation, request) => {
    const packet = open(pair, generation, request);
    arrivedCycles[packet.slot] = Number.NEGATIVE_INFINITY;
    return packet;
  });
  around(ibta.blocks.transmitter, 'payloadArrived', (arrived) => (of, packet, status, cycle) => {
    if (of === queue) arrivedCycles[packet.slot] = cycle;
    arrived(of, packet, status, cycle);
  });
  around(queue, 'close', (close) => () => {
    const { readyCycle, payloadBytes, slot, pair, psn } = queue.oldest;
    const formingCycles = Math.ceil(payloadBytes / transmitBytesPerCycle);
    const formedPs = domain.clock.edgePs(Math.max(readyCycle, arrivedCycles[slot]! + 1) + formingCycles);
    stream.instant('answerFormed', track, formedPs, pair.remoteQpn, psn);
    close();
  });
}
