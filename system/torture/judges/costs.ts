/**
 * What marked operations have cost: each TLP that a link has counted has one owner, an operation of a player or none, class by class.
 */
import { trafficClassNames } from '../../../hw/dma/index.ts';
import type { DeviceCost } from '../../machine/costs/index.ts';
import type { Costs, Played } from '../run-story.ts';

/** Of a device's TLPs no operation is asked for: completions of registers, and what the slot itself says. */
const unattributed: ReadonlySet<string> = new Set(['register', 'config', 'message', 'msix']);
const attributedNames = trafficClassNames.filter((name) => !unattributed.has(name));

/** @returns nothing where costs were not attributed */
export function judgeCosts({ costs, report, error }: Pick<Played, 'costs' | 'report' | 'error'>): string[] {
  if (costs === undefined || error !== undefined) return [];
  return report.nodes.flatMap(({ pcie }, node) => {
    const owned = ownedTlps(costs, node);
    return attributedNames.flatMap((name) => {
      const counted = pcie.toHost.classes[name]?.tlps ?? 0;
      return owned(name) === counted
        ? []
        : [`node ${node}: ${owned(name)} TLPs of class ${name} have an owner, its link counted ${counted}`];
    });
  });
}

/** TLPs of a class that a node's device sent: those of all owners together. */
function ownedTlps({ operations, others }: Costs, node: number): (name: string) => number {
  const costs: DeviceCost[] = operations.map((cost) => (cost.node === node ? cost : cost.peer));
  for (const other of others) if (other.node === node) costs.push(other.control, other.unmarked);
  return (name) =>
    costs.reduce((sum, { readTlps, writeTlps }) => sum + (readTlps[name] ?? 0) + (writeTlps[name] ?? 0), 0);
}
