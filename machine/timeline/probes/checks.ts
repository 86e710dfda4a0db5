/** Records of checks that refuse; ../refusals.ts provides the found and the expected values. */
import { type Hca, portNames } from '../../../hw/hca/index.ts';
import { requestCheckNumbers, translationsOf } from '../kinds.ts';
import { watchAccesses, watchCompletions, watchRequests } from '../refusals.ts';
import type { Stream } from '../stream.ts';
import { queuePairTrack } from './queue-pair-track.ts';

export function watchChecks(stream: Stream, hca: Hca): void {
  watchAccesses(hca, ({ qpn, user, key, answer, address, lengthBytes, found, heldTo, heldToEnd }) => {
    const { nowPs } = stream.lp;
    const track = stream.track('checks', translationsOf(qpn), { names: portNames });
    const values = [user, key, answer, address, lengthBytes, found, heldTo, heldToEnd];
    stream.interval('accessRefused', track, nowPs, nowPs, ...values);
  });
  if (hca.ibta !== undefined) watchRefusedRequests(stream, hca, hca.ibta);
  watchCompletions(hca, ({ qpn, wqeCounter, syndrome, isSend, atPs }) => {
    if (syndrome === 0) return;
    const track = queuePairTrack(stream, qpn);
    stream.instant('errorCompletion', track, atPs, qpn, wqeCounter, syndrome, isSend ? 1 : 0);
  });
}

function watchRefusedRequests(stream: Stream, hca: Hca, ibta: NonNullable<Hca['ibta']>): void {
  watchRequests(hca, ibta, ({ qpn, check, opcode, psn, found, heldTo, requesterQpn, atPs }) => {
    const values = [qpn, requestCheckNumbers[check], opcode, psn, found, heldTo, requesterQpn];
    stream.interval('requestRefused', queuePairTrack(stream, qpn), atPs, atPs, ...values);
  });
}
