/**
 * Judges the packets of the PCIe links by the standard (PCI Express Base Specification 3.1) and the parameters: it uses
 * what a protocol analyser at both ends of the link sees, and no state of either end.
 *
 *     packets of both directions, in the order of time ─► sizes, tags, completions, credits, lanes, latencies
 */
import { psPerSecond, psPerUs } from '../../base/index.ts';
import type { LinkPacket, LinkPackets } from '../../machine/index.ts';
import type { MachineConfig } from '../../machine/profile/index.ts';
import type { Played } from '../run-story.ts';
import { CreditRule } from './pcie/credit-rule.ts';
import type { Accuse, Direction, LinkRule } from './pcie/link-facts.ts';
import { CompletionRule, SizeRule } from './pcie/request-rules.ts';
import { LaneRule, ReadLatencyRule, RegisterLatencyRule } from './pcie/time-rules.ts';

/** Limit of findings of each rule on a link: further ones are mostly the same. */
const accusationsMax = 2;

type Judged = Pick<Played, 'story' | 'packets' | 'config' | 'held' | 'error'>;

export function judgePackets({ story, packets, config, held, error }: Judged): string[] {
  // No rule applies to a device that is removed, or that answers nothing after a reset.
  if (story.faults.some((fault) => 'device' in fault || 'reset' in fault)) return [];
  // After 2^53 ps, instants have a resolution of two or four picoseconds: too coarse for the time of one byte.
  if ((story.scene?.sleepsSeconds ?? 0) * psPerSecond > Number.MAX_SAFE_INTEGER) return [];
  const found: string[] = [];
  for (let node = 0; node < config.machine.nodeCount; node++) {
    const [toHost, toDevice] = (['toHost', 'toDevice'] as const).map((direction) =>
      packets.find((log) => log.node === node && log.direction === direction),
    );
    if (toHost === undefined || toDevice === undefined) continue;
    const isWhole = toHost.isWhole && toDevice.isWhole;
    const isAtRest = isWhole && error === undefined && held.removed !== undefined;
    const rules = rulesOf(config, isAtRest, (name) => accuserOf(found, `node ${node}, ${name}`));
    for (const [packet, direction] of inTime(toHost, toDevice))
      for (const rule of rules) rule.see(packet, direction);
    for (const rule of rules) rule.end?.();
  }
  return found;
}

function rulesOf(config: MachineConfig, isAtRest: boolean, accuserFor: (name: string) => Accuse): LinkRule[] {
  const timeoutPs = config.pcie.function.completionTimeoutDefaultUs * psPerUs;
  return [
    new SizeRule(config, accuserFor('sizes')),
    new CompletionRule(config, timeoutPs, accuserFor('completions')),
    new CreditRule(config, 'toHost', isAtRest, accuserFor('credits of the root port')),
    new CreditRule(config, 'toDevice', isAtRest, accuserFor('credits of the endpoint')),
    new LaneRule(config, 'toHost', accuserFor('lanes to the host')),
    new LaneRule(config, 'toDevice', accuserFor('lanes to the device')),
    new ReadLatencyRule(config, accuserFor('reads')),
    new RegisterLatencyRule(config, accuserFor('registers')),
  ];
}

function accuserOf(found: string[], of: string): Accuse {
  let count = 0;
  return (what) => {
    if (count++ < accusationsMax) found.push(`${of}: ${what}`);
  };
}

/** Merges both logs. If one of them is cut short, so is the other. */
function* inTime(left: LinkPackets, right: LinkPackets): Generator<[LinkPacket, Direction]> {
  const [lefts, rights] = [left.packets, right.packets];
  for (let at = 0, other = 0; at < lefts.length || other < rights.length; ) {
    const [one, two] = [lefts[at], rights[other]];
    if (one === undefined && !left.isWhole) return;
    if (two === undefined && !right.isWhole) return;
    if (two === undefined || (one !== undefined && one.atPs <= two.atPs)) {
      yield [one!, left.direction];
      at++;
    } else {
      yield [two, right.direction];
      other++;
    }
  }
}
