/** Interface of this room: see README.md. */
export { isSamePartition } from './is-same-partition.ts';
export {
  capabilitiesOfLink,
  type LinkSetting,
  pathRateOf,
  portInfoOfLink,
  queryPortOfLink,
  vendorSpeedOf,
} from './link-speed.ts';
export { type LinkTotals, type LinkTraffic, linkTotalsOf } from './link-totals.ts';
export { PerformanceAgent } from './performance-agent.ts';
export { staticRateCodes, staticRateMbps } from './static-rates.ts';
export { vlCapOf } from './vl-cap.ts';
