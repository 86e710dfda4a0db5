/** Linux's Soft-iWARP on the interface of an adapter in a guest, and the settings of its MPA. */
import type { Guest } from './ethernet-ends.ts';
import { ScenarioFailure, type Stage } from './stage.ts';

/** The adapter's interface, next to that by which guests, or a guest and its peer, are joined. */
export const siwInterface = '$(basename /sys/bus/pci/drivers/mlx4_core/0*/net/*)';

/** The link goes down for a moment when the MTU changes. */
export const untilSiwCarrier = `until [ "$(cat /sys/class/net/${siwInterface}/carrier)" = 1 ]; do sleep 0.1; done`;

/** Attaches siw to the interface. @throws ScenarioFailure if its device is not of iWARP */
export async function attachSiw(stage: Stage, guest: Guest = 0): Promise<string> {
  const said = await stage.check(
    `modprobe -a ib_uverbs rdma_ucm && rdma link add siw0 type siw netdev ${siwInterface} || exit 1
until grep -q ACTIVE /sys/class/infiniband/siw0/ports/1/state; do sleep 0.1; done
ibv_devinfo | grep transport`,
    { guest },
  );
  if (!said.includes('iWARP (1)')) throw new ScenarioFailure(said);
  return said.trim();
}

/** Settings of MPA, which take effect with the next connection. */
export interface MpaMode {
  readonly hasCrc?: boolean;
  /** Refuses connections with CRCs that it does not want itself. */
  readonly isStrict?: boolean;
  readonly isPeerToPeer?: boolean;
  readonly revision?: 1 | 2;
}

/** Sets all of them; without CRCs, peer-to-peer mode and strictness, and revision 2, unless the mode says otherwise. */
export async function setMpaMode(stage: Stage, mode: MpaMode, guest: Guest = 0): Promise<void> {
  const { hasCrc = false, isStrict = false, isPeerToPeer = false, revision = 2 } = mode;
  const values = {
    mpa_crc_required: Number(hasCrc),
    mpa_crc_strict: Number(isStrict),
    peer_to_peer: Number(isPeerToPeer),
    mpa_version: revision,
  };
  const commands = Object.entries(values).map(
    ([parameter, value]) => `echo ${value} >/sys/module/siw/parameters/${parameter}`,
  );
  await stage.check(commands.join(' && '), { guest });
}

export const crcWords = (hasCrc: boolean): string => (hasCrc ? 'with CRCs' : 'without CRCs');
