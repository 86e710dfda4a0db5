/**
 * Costs of marked operations: each TLP that a link counted has one owner, an operation of a player or none, class by class, and the CQE of a
 * successful request belongs to its operation. The TLPs of a DMA are its owner's from its request on: if a read fails, or a reset drops
 * requests of the DMA engines, the rest is not sent, and the owner has more TLPs than the link.
 */
import type { DeviceCost, OperationCost } from '../../machine/costs/index.ts';
import type { Costs, Played } from '../run-story.ts';
import { peerOfQp, type Story } from '../story.ts';
import { traitsOf } from './scene-traits.ts';
import { successesOf } from './traffic.ts';

/** TLPs that no operation causes: completions of register accesses, and messages of the slot itself. */
const unattributed: ReadonlySet<string> = new Set(['register', 'config', 'message', 'msix']);
/** Classes of writes, which fail at the device only by its reset. */
const isWritten: ReadonlySet<string> = new Set(['cqe', 'eqe', 'payloadWrite']);

/**
 * @returns no findings if costs were not attributed
 */
export function judgeCosts(played: Played): string[] {
  const { story, costs, report, error } = played;
  if (costs === undefined || error !== undefined) return [];
  const mayFail = readsMayFail(story);
  const mayDrop = mayBeReset(story);
  return report.nodes.flatMap(({ pcie }, node) => {
    const owned = ownedTlps(story, costs, node);
    const names = new Set([...Object.keys(pcie.toHost.classes), ...owned.keys()]);
    const found = [...names].flatMap((name) => {
      if (unattributed.has(name)) return [];
      const [own = 0, counted = 0] = [owned.get(name), pcie.toHost.classes[name]?.tlps];
      const isMore = (mayDrop || (mayFail && !isWritten.has(name))) && own > counted;
      return own === counted || isMore
        ? []
        : [`node ${node}: ${own} TLPs of class ${name} have an owner, its link counted ${counted}`];
    });
    const ofOperations = ownedTlps(story, { ...costs, others: [] }, node).get('cqe') ?? 0;
    const due = successesOf(played, node);
    if (ofOperations < due)
      found.push(`node ${node}: ${ofOperations} CQEs are of operations, ${due} requests in them ended well`);
    return found;
  });
}

/** Whether reads are refused, poisoned or abandoned, or the device is removed during them. */
const readsMayFail = (story: Story): boolean =>
  story.climate === 'broken' ||
  story.faults.some((fault) => 'read' in fault) ||
  traitsOf(story).hasLateReads === true ||
  traitsOf(story).hasRefusedReads === true;

/** A device leaves its slot, or a scene resets it. */
const mayBeReset = (story: Story): boolean =>
  story.faults.some((fault) => 'device' in fault) || traitsOf(story).hasResets === true;

/** TLPs that a node's device sent, by class: those of all owners together. */
function ownedTlps(story: Story, { operations, others }: Costs, node: number): Map<string, number> {
  const costs: DeviceCost[] = operations.flatMap((cost) => [
    ...(cost.node === node ? [cost] : []),
    ...(receiverOf(story, cost) === node ? [cost.peer] : []),
  ]);
  for (const other of others) if (other.node === node) costs.push(other.control, other.unmarked);
  const owned = new Map<string, number>();
  for (const [name, tlps] of costs
    .flatMap((cost) => [cost.readTlps, cost.writeTlps])
    .flatMap(Object.entries<number>))
    owned.set(name, (owned.get(name) ?? 0) + tlps);
  return owned;
}

/** The node that received an operation's packets: the own one, if a program's QP is connected to another of its own. */
function receiverOf(story: Story, { node, program, name }: OperationCost): number {
  const [index, qp] = [/^player(\d+)$/.exec(program), /^post on QP (\d+)$/.exec(name)].map((match) =>
    Number(match?.[1]),
  ) as [number, number];
  const peer = peerOfQp(story, index, qp);
  return peer === undefined ? 1 - node : story.programs[peer.program]!.node;
}
