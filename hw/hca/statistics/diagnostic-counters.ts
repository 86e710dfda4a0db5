/**
 * The counters that DIAG_RPRT reports, which Linux shows as `hw_counters` of the device (rq_num_oos, sq_num_to …):
 * errors of completions, by side and kind, and recovery actions of the transport. They count from the last reset and
 * wrap at 32 bits. Source: abi/static-configuration.ts.
 */
import { CqeSyndrome, diagnosticReport } from '../../../abi/index.ts';

export type DiagnosticName = keyof typeof diagnosticReport.fields;

/** Counters of completion errors, of the send side and of the receive side; absent errors have no counter. */
const completionErrors: Readonly<Record<number, readonly [DiagnosticName, DiagnosticName | undefined]>> = {
  [CqeSyndrome.LOCAL_LENGTH_ERR]: ['sqLocalLength', 'rqLocalLength'],
  [CqeSyndrome.LOCAL_QP_OP_ERR]: ['sqLocalQpOperation', 'rqLocalQpOperation'],
  [CqeSyndrome.LOCAL_PROT_ERR]: ['sqLocalProtection', 'rqLocalProtection'],
  [CqeSyndrome.WR_FLUSH_ERR]: ['sqFlushed', 'rqFlushed'],
  [CqeSyndrome.MW_BIND_ERR]: ['sqWindowBind', undefined],
  [CqeSyndrome.BAD_RESP_ERR]: ['sqBadResponse', undefined],
  [CqeSyndrome.REMOTE_INVAL_REQ_ERR]: ['sqRemoteInvalidRequest', undefined],
  [CqeSyndrome.REMOTE_ACCESS_ERR]: ['sqRemoteAccess', undefined],
  [CqeSyndrome.REMOTE_OP_ERR]: ['sqRemoteOperation', undefined],
  [CqeSyndrome.TRANSPORT_RETRY_EXC_ERR]: ['sqTransportRetriesExceeded', undefined],
  [CqeSyndrome.RNR_RETRY_EXC_ERR]: ['sqRnrRetriesExceeded', undefined],
};

const names = Object.keys(diagnosticReport.fields) as readonly DiagnosticName[];

export class DiagnosticCounters {
  /** Counters by name. */
  readonly counts = Object.fromEntries(names.map((name) => [name, 0])) as Record<DiagnosticName, number>;

  count(name: DiagnosticName): void {
    this.counts[name] = (this.counts[name] + 1) >>> 0;
  }

  /** A CQE with an error has been written. */
  completionFailed(isSend: boolean, syndrome: number): void {
    const name = completionErrors[syndrome]?.[isSend ? 0 : 1];
    if (name !== undefined) this.count(name);
  }

  reset(): void {
    for (const name of names) this.counts[name] = 0;
  }
}
