/**
 * Networks of a comparison: each carries the RDMA paths between HCAs whose ports and transport speak it. The traditional
 * paths have a NIC of their own and are on no network.
 */
import type { MachineConfig } from '../../machine/profile/index.ts';
import { type CompareArgs, type ComparePath, machineOf, pathTitles } from './compare-plan.ts';

export const compareNetworks = ['infiniband', 'roce-v1', 'roce-v2', 'iwarp'] as const;
export type CompareNetwork = (typeof compareNetworks)[number];

/** Names of the networks in tables. */
const networkTitles: Readonly<Record<CompareNetwork, string>> = {
  infiniband: 'InfiniBand',
  'roce-v1': 'RoCE v1',
  'roce-v2': 'RoCE v2',
  iwarp: 'iWARP',
};

type Capability = MachineConfig['hca']['capability'];
type NetworkCapability = Pick<Capability, 'linkLayer' | 'transport' | 'roce'>;

const capabilities: Readonly<Record<CompareNetwork, NetworkCapability>> = {
  infiniband: { linkLayer: 'infiniband', transport: 'ibta', roce: 'none' },
  'roce-v1': { linkLayer: 'ethernet', transport: 'ibta', roce: 'v1' },
  'roce-v2': { linkLayer: 'ethernet', transport: 'ibta', roce: 'v2' },
  iwarp: { linkLayer: 'ethernet', transport: 'iwarp', roce: 'none' },
};

/** Paths of the parameters that a network decides. */
export const networkParameters = ['linkLayer', 'transport', 'roce'].map((name) => `hca.capability.${name}`);

/** Parameters of a machine on this network. */
const settingsOf = (network: CompareNetwork): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Object.entries(capabilities[network]).map(([name, value]) => [`hca.capability.${name}`, value]),
  );

/** The network of a machine's HCAs. Ethernet ports that speak several versions of RoCE count as the newest. */
export function networkOf({ hca }: Pick<MachineConfig, 'hca'>): CompareNetwork {
  const { linkLayer, transport, roce } = hca.capability;
  if (linkLayer === 'infiniband') return 'infiniband';
  if (transport === 'iwarp') return 'iwarp';
  return roce === 'v1' ? 'roce-v1' : 'roce-v2';
}

export const networkTitleOf = (network: CompareNetwork): string => networkTitles[network];

/** Whether a network carries the path. */
export const isOnNetwork = (path: ComparePath): boolean =>
  path === 'send' || path === 'write' || path === 'read';

/** Parameters that the machine of a row needs. */
export const machineOfRow = ({ path, network }: RowPlace): Readonly<Record<string, string>> => ({
  ...machineOf(path),
  ...(network === undefined ? {} : settingsOf(network)),
});

type RowPlace = Pick<CompareArgs, 'path' | 'network'>;

/** Name of a row in tables: its path, and its network if several are compared. */
export const rowTitleOf = ({ path, network }: RowPlace): string =>
  network === undefined ? pathTitles[path] : `${pathTitles[path]}, ${networkTitles[network]}`;
