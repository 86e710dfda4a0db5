/** Interface of this room: see README.md. */
export { AttributedInterrupts, AttributedReads, AttributedWrites, MissingPort } from './attributed-dma.ts';
export { CostAttribution, type CostLedger, type CostRow, type OperationSource } from './cost-attribution.ts';
