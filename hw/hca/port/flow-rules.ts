/**
 * Rules by which software steers the frames of a port to its QPs, as FLOW_ATTACH and FLOW_DETACH write them.
 *
 *     frame ──> rules by priority, each all of its records ──> QP of the first that fits
 *           ──> else, to a group: the QP of groups; else, or without one: the QP of all
 *
 * If several rules match, the first receives the frame: no copies are made for several QPs. Source: interface sheet
 * 3.18.
 */
import type { Qpn } from '../objects/index.ts';

/** Offsets of the parts of a frame in its bytes; -1 for an absent part. */
interface FramePlaces {
  readonly link: number;
  readonly network: number;
  readonly transport: number;
  readonly protocol: number;
  readonly vlanTag: number;
}

/** Bytes at a place of a part of the frame, compared under a mask. */
export interface FlowMatch {
  readonly part: 'link' | 'network' | 'transport';
  readonly place: number;
  readonly value: Uint8Array;
  readonly mask: Uint8Array;
}

/** Conditions of a regular rule on a frame. */
export interface FlowConditions {
  readonly matches: readonly FlowMatch[];
  /** Protocol number in the IPv4 header, or -1 for any. */
  readonly protocol: number;
  readonly needsIpv4: boolean;
  /** Ethertype after a tag, or -1 for any. */
  readonly etherType: number;
  readonly vlan: number;
  readonly vlanMask: number;
}

interface FlowRule {
  readonly id: number;
  readonly priority: number;
  readonly qpn: Qpn;
  /** Undefined of a default rule. */
  readonly conditions: FlowConditions | undefined;
  /** True for a default rule that matches groups only. */
  readonly isOfGroups: boolean;
}

const GROUP_BIT = 1;
const ETHERTYPE_TAG = 0x8100;
const ETHERTYPE_IPV4 = 0x0800;
const ETHERTYPE_PLACE = 12;
const TAG_BYTES = 4;
const NONE = -1;

export class FlowRules {
  /** Regular rules in the order in which they are tried, then default rules. */
  readonly #rules: FlowRule[] = [];

  get count(): number {
    return this.#rules.length;
  }

  /** @param isFirst before the others of its priority */
  add(rule: FlowRule, isFirst: boolean): void {
    const isBehind = ({ priority }: FlowRule): boolean =>
      isFirst ? priority >= rule.priority : priority > rule.priority;
    const at = this.#rules.findIndex(isBehind);
    this.#rules.splice(at === -1 ? this.#rules.length : at, 0, rule);
  }

  /** False: there is no such rule. */
  remove(id: number): boolean {
    const at = this.#rules.findIndex((rule) => rule.id === id);
    if (at !== -1) this.#rules.splice(at, 1);
    return at !== -1;
  }

  clear(): void {
    this.#rules.length = 0;
  }

  /** Returns the QPN for the frame at `bytes[at]`, whose length excludes the FCS; -1 if no rule matches. */
  qpnOf(bytes: Uint8Array, at: number, frameBytes: number): Qpn {
    const places = placesOf(bytes, at, frameBytes);
    const end = at + frameBytes;
    const isGroup = (bytes[at]! & GROUP_BIT) !== 0;
    let found = NONE;
    let foundOfGroups = NONE;
    for (const { qpn, conditions, isOfGroups } of this.#rules) {
      if (conditions !== undefined) {
        if (fits(conditions, bytes, places, end)) return qpn;
      } else if (!isOfGroups) found = found === NONE ? qpn : found;
      else if (isGroup) foundOfGroups = foundOfGroups === NONE ? qpn : foundOfGroups;
    }
    return foundOfGroups === NONE ? found : foundOfGroups;
  }

  inspect(): readonly { readonly id: number; readonly priority: number; readonly qpn: number }[] {
    return this.#rules.map(({ id, priority, qpn }) => ({ id, priority, qpn }));
  }
}

const wordAt = (bytes: Uint8Array, at: number): number => (bytes[at]! << 8) | bytes[at + 1]!;

function placesOf(
  bytes: Uint8Array,
  at: number,
  frameBytes: number,
): FramePlaces & { readonly etherType: number } {
  const end = at + frameBytes;
  const isTagged = wordAt(bytes, at + ETHERTYPE_PLACE) === ETHERTYPE_TAG;
  const typeAt = at + ETHERTYPE_PLACE + (isTagged ? TAG_BYTES : 0);
  const etherType = typeAt + 2 <= end ? wordAt(bytes, typeAt) : NONE;
  const vlanTag = isTagged ? wordAt(bytes, at + ETHERTYPE_PLACE + 2) : NONE;
  const network = typeAt + 2;
  const base = { link: at, etherType, vlanTag };
  if (etherType !== ETHERTYPE_IPV4 || network + 20 > end)
    return { ...base, network: NONE, transport: NONE, protocol: NONE };
  const isFragment = (wordAt(bytes, network + 6) & 0x1fff) !== 0;
  const transport = isFragment ? NONE : network + (bytes[network]! & 0xf) * 4;
  return { ...base, network, transport, protocol: bytes[network + 9]! };
}

function fits(
  { matches, protocol, needsIpv4, etherType, vlan, vlanMask }: FlowConditions,
  bytes: Uint8Array,
  places: FramePlaces & { readonly etherType: number },
  end: number,
): boolean {
  if (needsIpv4 && places.network === NONE) return false;
  if (protocol !== NONE && places.protocol !== protocol) return false;
  if (etherType !== NONE && places.etherType !== etherType) return false;
  if (vlanMask !== 0 && (places.vlanTag === NONE || ((places.vlanTag ^ vlan) & vlanMask) !== 0)) return false;
  return matches.every(({ part, place, value, mask }) => {
    const from = places[part];
    if (from === NONE || from + place + value.length > end) return false;
    return value.every((byte, index) => ((bytes[from + place + index]! ^ byte) & mask[index]!) === 0);
  });
}
