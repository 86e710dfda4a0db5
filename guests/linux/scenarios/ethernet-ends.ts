/** Values shared by scenarios over an Ethernet cable: both ends, their addresses, and their GID indices. */
import { ScenarioFailure, type Stage } from './stage.ts';

/** Guests at the two ends of a cable. */
export const guests = [0, 1] as const;
export type Guest = (typeof guests)[number];

/** Addresses of the interfaces by guest; the same with a tag. */
export const addresses = ['10.2.0.1', '10.2.0.2'] as const;
export const taggedAddresses = ['10.3.0.1', '10.3.0.2'] as const;
/** The only interface of the adapter in a guest. */
export const interfaceName = 'eth0';
const vlanId = 7;
export const jumboMtu = 9000;
/** Device ID of a ConnectX-3 Pro, which has RoCE version 2. */
export const proDeviceId = 0x1007;

/** Runs a command in both guests, one after another. */
export async function inBoth(stage: Stage, command: (guest: Guest) => string): Promise<string[]> {
  const outputs = [];
  for (const guest of guests) outputs.push(await stage.check(command(guest), { guest }));
  return outputs;
}

/** Waits until the links of both interfaces are up. */
export const untilCarrier = (stage: Stage): Promise<string[]> =>
  inBoth(stage, () => `until [ "$(cat /sys/class/net/${interfaceName}/carrier)" = 1 ]; do sleep 0.1; done`);

/** Interfaces of a VLAN, with addresses, in both guests. */
export function addVlans(stage: Stage): Promise<string[]> {
  const link = `${interfaceName}.${vlanId}`;
  return inBoth(
    stage,
    (guest) =>
      `modprobe 8021q; ip link add link ${interfaceName} name ${link} type vlan id ${vlanId} && ` +
      `ip addr add ${taggedAddresses[guest]}/24 dev ${link} && ip link set ${link} up`,
  );
}

export type RoceVersion = 'v1' | 'v2';
/** Types of GIDs, as in sysfs. */
export const gidTypes = { v1: 'IB/RoCE v1', v2: 'RoCE v2' } as const;
/** Prefixes of GIDs as in sysfs: of {@link addresses}, of those next to a simulated host, and of link-local addresses. */
const gidBegins = { IPv4: /^0000:0000:0000:0000:0000:ffff:0a0[02]:/, IPv6: /^fe80:/ } as const;
export type GidFamily = keyof typeof gidBegins;

/** Index of the GID of this family and version among the first twenty in the table of a guest's device. */
export async function gidIndex(
  stage: Stage,
  { guest = 0, device }: { readonly guest?: Guest; readonly device: string },
  version: RoceVersion,
  family: GidFamily,
): Promise<number> {
  // One process reads all: a guest would need longer to start forty. An empty entry has no type, and cannot be read.
  const listing = await stage.check(
    `cd /sys/class/infiniband/${device}/ports/1; grep -Hs '' gids/? gids/1? gid_attrs/types/? gid_attrs/types/1?; true`,
    { guest },
  );
  const [gids, types] = ['gids', 'gid_attrs/types'].map(
    (folder) =>
      new Map(
        [...listing.matchAll(new RegExp(`^${folder}/(\\d+):(.*)$`, 'gm'))].map(
          ([, index, value]) => [Number(index), value!] as const,
        ),
      ),
  );
  const isWanted = ([index, gid]: readonly [number, string]): boolean =>
    gidBegins[family].test(gid) && types!.get(index) === gidTypes[version];
  const found = [...gids!].find(isWanted);
  if (found === undefined) throw new ScenarioFailure(`no GID of ${family} and ${version} in:\n${listing}`);
  return found[0];
}

/** The last line with figures in a test's output. */
export function lastFigures(output: string): string {
  const lines = output.split('\n').filter((line) => /^\s*\d+.*\d/.test(line));
  return lines.at(-1)?.trim().replace(/\s+/g, ' ') ?? output;
}
