/**
 * The machine of a row whose source ran a common test on its own hosts: card, port and switch as the columns nic and
 * link state them, and the level of the source. A row of a user's own file gets its machine in the same way.
 */
import type { ParameterValues } from '../../../machine/profile/index.ts';
import type { Measurement } from '../measurements.ts';
import type { PointMachine } from '../points.ts';
import { setOfSource } from './sources.ts';

/** Cards that have a profile; iWARP cards have none. */
export const knownCard = /ConnectX-[235]\b|\bmlx4\b|MT4099|MT26428|MT275\d\d/;

/**
 * Delay of one switch in nanoseconds, port to port: estimates, of the order that vendors state for such switches; those
 * of InfiniBand at 40 Gb/s are of Infiniscale IV.
 */
const switches: readonly (readonly [name: RegExp, delayNs: number])[] = [
  [/Infiniscale-IV|^IB 40 Gb\/s switch/i, 100],
  [/switch/i, 170],
];

/** Values that a link or a slot declares beyond the profile of the card: the column `pcie` of a row with 16 lanes. */
const declared: readonly (readonly [column: 'link' | 'pcie', text: RegExp, set: ParameterValues])[] = [
  ['link', /\bFDR10\b/, { 'wire.speed': 'FDR10' }],
  ['link', /^RoCE 10\b/, { 'ethernet.gigabitsPerSecond': 10 }],
  ['pcie', /\b(?<!card )x16\b/, { 'pcie.link.lanes': 16 }],
];

const profilesOfCard: readonly (readonly [nic: RegExp, link: RegExp, profile: string])[] = [
  [/ConnectX-5/, /RoCE|GbE/, 'connectx5-100gbe'],
  [/ConnectX-5/, /(?:)/, 'connectx5-gen3'],
  [/ConnectX-2|MT26428/, /RoCE|GbE/, 'connectx2-10gbe'],
  [/ConnectX-2|MT26428/, /(?:)/, 'connectx2-gen2'],
  [/(?:)/, /RoCE|GbE/, 'connectx3-pro-40gbe'],
  [/(?:)/, /FDR\b|\b56\b/, 'connectx3-fdr-fitted'],
  [/(?:)/, /(?:)/, 'connectx3-qdr-fitted'],
];

/** The pair of machines on which a row was measured. */
export function machineOf(
  row: Pick<Measurement, 'nic' | 'link' | 'pcie'> & Partial<Pick<Measurement, 'source' | 'params'>>,
): PointMachine {
  const { nic, link } = row;
  const [, , profile] = profilesOfCard.find(([card, port]) => card.test(nic) && port.test(link))!;
  const delayNs = switches.find(([name]) => name.test(link))?.[1];
  const ofLink: ParameterValues = delayNs === undefined ? {} : { 'wire.switchLatencyNs': delayNs };
  const ofText = declared.filter(([column, text]) => text.test(row[column])).map(([, , set]) => set);
  return { profile, set: Object.assign({}, ofLink, ...ofText, setOfSource(row)) as ParameterValues };
}

/** The path MTU that a row states, in bytes; undefined if it states none. */
export function statedMtuBytes({
  link,
}: Pick<Measurement, 'link'>): 256 | 512 | 1024 | 2048 | 4096 | undefined {
  const mtu = Number(/\bMTU (\d+)/.exec(link)?.[1]);
  return ([256, 512, 1024, 2048, 4096] as const).find((known) => known === mtu);
}
