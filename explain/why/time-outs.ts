/**
 * Time-outs of a QP in words. With go-back-N each lasts the local ACK timeout; with selective repeat they begin with
 * hca.retransmitLowUs or hca.retransmitHighUs and double while the peer is silent, up to that timeout (RFC 6298, 5.5).
 */
import type { QpEvidence } from '../../machine/evidence/index.ts';
import { counted, durationText } from './cause.ts';

/** Duration of the QP's time-outs, e.g. "67.11 ms" or "100 µs to 67.11 ms"; its local ACK timeout if none expired. */
export function timeoutDurations({ timeouts, timeoutPs, timeoutWaits }: QpEvidence): string {
  if (timeouts === 0) return durationText(timeoutPs);
  const [least, most] = [durationText(timeoutWaits.leastPs), durationText(timeoutWaits.mostPs)];
  return least === most ? most : `${least} to ${most}`;
}

/** Number and duration of the QP's time-outs; also their sum if they differ. */
export function timeoutsText(qp: QpEvidence): string {
  const durations = timeoutDurations(qp);
  const sum = durations.includes(' to ') ? `, ${durationText(qp.timeoutWaits.totalPs)} together` : '';
  return `${counted(qp.timeouts, 'time-out')} of ${durations}${sum}`;
}
