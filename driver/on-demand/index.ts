export { type OnDemandStatistics, Pager } from './pager.ts';
export { OnDemandRegion, type PageableMemory, pageCountOf } from './region.ts';
