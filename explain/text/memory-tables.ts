/** Tables of the parts between device and memory: the IOMMU and on-demand paging; only parts that the machine has. */

import type { NodeReport } from '../../machine/index.ts';
import { countText } from './format.ts';
import { tableOf } from './table.ts';

type Counts = Readonly<Record<string, number>>;

/** Hits, walks and faults of the IOMMUs, and refused accesses. */
export function iommuTable(nodes: readonly NodeReport[]): string[] {
  if (nodes.every(({ iommu }) => iommu === undefined)) return [];
  return [countsTable('IOMMU, and accesses of the device that were turned away', nodes.map(iommuCounts))];
}

const iommuCounts = ({ iommu, deviceFaults }: NodeReport): Counts => ({ ...iommu, ...deviceFaults });

/** Pages that devices requested, by side, and how they were provided and removed. */
export function onDemandTable(nodes: readonly NodeReport[]): string[] {
  if (nodes.every(({ onDemand }) => onDemand === undefined)) return [];
  return [countsTable('On-demand paging', nodes.map(onDemandCounts))];
}

function onDemandCounts({ onDemand }: NodeReport): Counts {
  if (onDemand === undefined) return {};
  const { requests, refused, waitCycles, ...device } = onDemand.device;
  const bySide = (name: string, counts: Counts): Counts =>
    Object.fromEntries(Object.entries(counts).map(([side, count]) => [`${name}, ${side}`, count]));
  return {
    ...bySide('requests', requests),
    ...bySide('refused', refused),
    ...bySide('cycles waited', waitCycles),
    ...device,
    ...onDemand.driver,
  };
}

/** A row for each count that is nonzero somewhere. */
function countsTable(title: string, counts: readonly Counts[]): string {
  const names = [...new Set(counts.flatMap((each) => Object.keys(each)))];
  const rows = names
    .filter((name) => counts.some((each) => (each[name] ?? 0) !== 0))
    .map((name) => [name, ...counts.map((each) => countText(each[name] ?? 0))]);
  return tableOf(title, ['', ...counts.map((_, node) => `host ${node}`)], rows);
}
