/**
 * Counts NAKs twice: as recovery actions of the transport, and in the register that DIAG_RPRT reads. Sources: IBTA vol
 * 1, 9.7.5.2 (NAK codes); abi/static-configuration.ts.
 */
import { AethKind, NakCode, syndromeKind, syndromeValue } from '../../../../wire/index.ts';
import type { DiagnosticCounters, DiagnosticName } from '../../statistics/index.ts';
import type { TransportCounters, TransportEvent } from './transport-counters.ts';

type Direction = 'Sent' | 'Received';

/** NAKs that a responder has sent, by code. */
const sentNaks: Readonly<Record<number, DiagnosticName>> = {
  [NakCode.PSN_SEQUENCE_ERROR]: 'rqOutOfSequence',
  [NakCode.INVALID_REQUEST]: 'rqRemoteInvalidRequest',
  [NakCode.REMOTE_ACCESS_ERROR]: 'rqRemoteAccess',
};

/** Counts a NAK of this AETH syndrome. Other received NAKs are counted with the completion that they cause. */
export function countNak(
  syndrome: number,
  direction: Direction,
  transport: TransportCounters,
  diagnostics: DiagnosticCounters,
): void {
  const isRnr = syndromeKind(syndrome) === AethKind.RNR_NAK;
  const isSequence = !isRnr && syndromeValue(syndrome) === NakCode.PSN_SEQUENCE_ERROR;
  transport.count(eventOf(isRnr, isSequence, direction));
  const name = direction === 'Sent' ? sentName(isRnr, syndrome) : receivedName(isRnr, isSequence);
  if (name !== undefined) diagnostics.count(name);
}

function eventOf(isRnr: boolean, isSequence: boolean, direction: Direction): TransportEvent {
  if (isRnr) return `rnrNak${direction}`;
  return isSequence ? `sequenceNak${direction}` : `errorNak${direction}`;
}

const sentName = (isRnr: boolean, syndrome: number): DiagnosticName | undefined =>
  isRnr ? 'rqRnr' : sentNaks[syndromeValue(syndrome)];

function receivedName(isRnr: boolean, isSequence: boolean): DiagnosticName | undefined {
  if (isRnr) return 'sqRnr';
  return isSequence ? 'sqOutOfSequence' : undefined;
}
