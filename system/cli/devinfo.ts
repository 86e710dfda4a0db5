/** `hca devinfo`: what `ibv_devinfo -v` prints of the device of host 0. */
import { Machine } from '../machine.ts';
import type { DeviceQuery } from '../programs/device-query.ts';
import { hcaMachineOptionsOf, type MachineChoice } from './options.ts';
import { checkWritable, Screen, writeJson } from './output.ts';
import { programUrl } from './program-url.ts';

export interface DevinfoOptions extends MachineChoice {
  readonly json?: string;
}

export async function devinfo(options: DevinfoOptions): Promise<void> {
  checkWritable(options.json);
  await using machine = await Machine.create(hcaMachineOptionsOf(options));
  await machine.load({
    node: 0,
    name: 'devinfo',
    run: { url: programUrl('device-query'), exportName: 'queryFirstDevice' },
  });
  await machine.run();
  const [query] = (await machine.results()) as unknown as [DeviceQuery];
  if (options.json !== undefined) writeJson(options.json, query);
  new Screen(options.json).print(devinfoText(query));
}

const portStates: Readonly<Record<number, string>> = {
  0: 'PORT_NOP',
  1: 'PORT_DOWN',
  2: 'PORT_INIT',
  3: 'PORT_ARMED',
  4: 'PORT_ACTIVE',
};
const physicalStates: Readonly<Record<number, string>> = {
  1: 'SLEEP',
  2: 'POLLING',
  3: 'DISABLED',
  4: 'PORT_CONFIGURATION TRAINING',
  5: 'LINK_UP',
  6: 'LINK_ERROR_RECOVERY',
};
const widths: Readonly<Record<number, string>> = { 1: '1', 2: '4', 4: '8', 8: '12' };
const speeds: Readonly<Record<number, string>> = {
  1: '2.5 Gbps',
  2: '5.0 Gbps',
  4: '10.0 Gbps',
  8: '10.0 Gbps',
  16: '14.0 Gbps',
  32: '25.0 Gbps',
};

/** Names of ibv_devinfo for the attributes it prints one below the other. */
const deviceRows = {
  max_mr_size: 'maxMrSize',
  page_size_cap: 'pageSizeCap',
  max_qp: 'maxQp',
  max_qp_wr: 'maxQpWr',
  max_sge: 'maxSge',
  max_cq: 'maxCq',
  max_cqe: 'maxCqe',
  max_mr: 'maxMr',
  max_pd: 'maxPd',
  max_qp_rd_atom: 'maxQpRdAtom',
  max_res_rd_atom: 'maxResRdAtom',
  max_qp_init_rd_atom: 'maxQpInitRdAtom',
  max_ah: 'maxAh',
  max_srq: 'maxSrq',
  max_srq_wr: 'maxSrqWr',
  max_srq_sge: 'maxSrqSge',
  max_pkeys: 'maxPkeys',
  local_ca_ack_delay: 'localCaAckDelay',
} as const;
const hexadecimalRows = new Set(['max_mr_size', 'page_size_cap']);

/** The text that ibv_devinfo -v would print. */
export function devinfoText({ name, device, numCompVectors, ports }: DeviceQuery): string {
  const hex = (value: number | string | undefined, digits = 0): string =>
    `0x${Number(value ?? 0)
      .toString(16)
      .padStart(digits, '0')}`;
  const lines = [
    `hca_id:\t${name}`,
    '\ttransport:\t\t\tInfiniBand (0)',
    `\tfw_ver:\t\t\t\t${device.fwVer}`,
    `\tnode_guid:\t\t\t${device.nodeGuid}`,
    `\tsys_image_guid:\t\t\t${device.sysImageGuid}`,
    `\tvendor_id:\t\t\t${hex(device.vendorId, 4)}`,
    `\tvendor_part_id:\t\t\t${device.vendorPartId}`,
    `\thw_ver:\t\t\t\t${hex(device.hwVer)}`,
    `\tphys_port_cnt:\t\t\t${device.physPortCnt}`,
    ...Object.entries(deviceRows).map(([row, attribute]) => {
      const value = device[attribute];
      return `\t${row}:${tabsAfter(row)}${hexadecimalRows.has(row) ? hex(value) : value}`;
    }),
    `\tnum_comp_vectors:\t\t${numCompVectors}`,
    ...ports.flatMap(portLines),
  ];
  return lines.join('\n');
}

/** Values begin in the fourth column of eight after the first tab. */
const tabsAfter = (row: string): string => '\t'.repeat(Math.max(1, 4 - Math.floor((row.length + 1) / 8)));

function portLines({ number, port, gid0 }: DeviceQuery['ports'][number]): string[] {
  const mtu = (code: number): string => `${2 ** (code + 7)} (${code})`;
  return [
    `\t\tport:\t${number}`,
    `\t\t\tstate:\t\t\t${portStates[port.state]} (${port.state})`,
    `\t\t\tmax_mtu:\t\t${mtu(port.maxMtu)}`,
    `\t\t\tactive_mtu:\t\t${mtu(port.activeMtu)}`,
    `\t\t\tsm_lid:\t\t\t${port.smLid}`,
    `\t\t\tport_lid:\t\t${port.lid}`,
    `\t\t\tport_lmc:\t\t0x${port.lmc.toString(16).padStart(2, '0')}`,
    '\t\t\tlink_layer:\t\tInfiniBand',
    `\t\t\tmax_msg_sz:\t\t0x${port.maxMsgSz.toString(16)}`,
    `\t\t\tport_cap_flags:\t\t0x${port.portCapFlags.toString(16).padStart(8, '0')}`,
    `\t\t\tmax_vl_num:\t\t${2 ** (port.maxVlNum - 1)} (${port.maxVlNum})`,
    `\t\t\tbad_pkey_cntr:\t\t0x${port.badPkeyCntr.toString(16)}`,
    `\t\t\tqkey_viol_cntr:\t\t0x${port.qkeyViolCntr.toString(16)}`,
    `\t\t\tsm_sl:\t\t\t${port.smSl}`,
    `\t\t\tpkey_tbl_len:\t\t${port.pkeyTblLen}`,
    `\t\t\tgid_tbl_len:\t\t${port.gidTblLen}`,
    `\t\t\tsubnet_timeout:\t\t${port.subnetTimeout}`,
    `\t\t\tinit_type_reply:\t${port.initTypeReply}`,
    `\t\t\tactive_width:\t\t${widths[port.activeWidth]}X (${port.activeWidth})`,
    `\t\t\tactive_speed:\t\t${speeds[port.activeSpeed]} (${port.activeSpeed})`,
    `\t\t\tphys_state:\t\t${physicalStates[port.physState]} (${port.physState})`,
    `\t\t\tGID[  0]:\t\t${gid0}`,
  ];
}
