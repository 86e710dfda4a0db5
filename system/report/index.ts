export { buildReport } from './build-report.ts';
export { checksOf } from './checks.ts';
export { type HcaLedger, hcaLedgerOf } from './hca-ledger.ts';
export { type HostLedger, hostLedgerOf } from './host-ledger.ts';
export * from './schema.ts';
