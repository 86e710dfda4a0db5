/** `hca devinfo`: prints what `ibv_devinfo -v` prints for the device of host 0. */
import type { Command } from 'commander';
import { DeviceCapFlag } from '../../driver/index.ts';
import { programUrl } from '../../experiments/runs/program-url.ts';
import type { DeviceQuery } from '../../experiments/workloads/index.ts';
import { pageOf, textSection } from '../../explain/page/index.ts';
import { Machine, type MachineOptions } from '../../machine/index.ts';
import { checkWritable } from '../../runtime/output-files.ts';
import { type HtmlChoice, headOf, writePage } from '../html-output.ts';
import { argumentsOf, invocationOf } from '../invocation.ts';
import { hcaMachineOptionsOf, type MachineChoice } from '../options.ts';
import { Screen, writeJson } from '../output.ts';

export interface DevinfoOptions extends MachineChoice, HtmlChoice {
  readonly json?: string;
}

export async function devinfo(options: DevinfoOptions, command: Command): Promise<void> {
  checkWritable(options.json);
  checkWritable(options.html);
  const machineOptions = hcaMachineOptionsOf(options);
  await using machine = await Machine.create(asLinux(machineOptions));
  await machine.load({
    node: 0,
    name: 'devinfo',
    run: { url: programUrl('device-query'), exportName: 'queryFirstDevice' },
  });
  await machine.run();
  const [query] = await machine.results<[DeviceQuery]>();
  if (options.json !== undefined) {
    const invocation = invocationOf(command, argumentsOf(command), machineOptions);
    writeJson(options.json, { schema: 'hca-devinfo/1', invocation, ...query });
  }
  const screen = new Screen(options.json);
  const text = devinfoText(query);
  screen.print(text);
  const ran = { title: `The device of host 0: ${query.name}`, machine: machineOptions };
  writePage(options, () => pageOf(headOf(command, ran), [textSection('ibv_devinfo -v', text)]), screen);
}

/** Sets, by default, as many multicast groups as Linux creates: the simulated driver has fewer to save memory. */
function asLinux(options: MachineOptions): MachineOptions {
  return { ...options, set: { 'driver.logMcgs': 13, ...options.set } };
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
const widths: Readonly<Record<number, string>> = { 1: '1', 2: '4', 4: '8', 8: '12', 16: '2' };
const speeds: Readonly<Record<number, string>> = {
  1: '2.5 Gbps',
  2: '5.0 Gbps',
  4: '10.0 Gbps',
  8: '10.0 Gbps',
  16: '14.0 Gbps',
  32: '25.0 Gbps',
  64: '50.0 Gbps',
  128: '100.0 Gbps',
};

const atomicCapabilities: Readonly<Record<number, string>> = {
  0: 'ATOMIC_NONE',
  1: 'ATOMIC_HCA',
  2: 'ATOMIC_GLOB',
};

type Device = DeviceQuery['device'];

/** Rows for features that no device of this kind has; ibv_devinfo prints them anyway. */
const NONE = (): number => 0;

/** The rows of ibv_devinfo in its order, from the largest region to the ACK delay. */
const deviceRows: readonly (readonly [row: string, value: (device: Device) => number | string])[] = [
  ['max_mr_size', ({ maxMrSize }) => maxMrSize],
  ['page_size_cap', ({ pageSizeCap }) => hex(pageSizeCap)],
  ['max_qp', ({ maxQp }) => maxQp],
  ['max_qp_wr', ({ maxQpWr }) => maxQpWr],
  ['device_cap_flags', flagLines],
  ['max_sge', ({ maxSge }) => maxSge],
  ['max_sge_rd', ({ maxSgeRd }) => maxSgeRd],
  ['max_cq', ({ maxCq }) => maxCq],
  ['max_cqe', ({ maxCqe }) => maxCqe],
  ['max_mr', ({ maxMr }) => maxMr],
  ['max_pd', ({ maxPd }) => maxPd],
  ['max_qp_rd_atom', ({ maxQpRdAtom }) => maxQpRdAtom],
  ['max_ee_rd_atom', NONE],
  ['max_res_rd_atom', ({ maxResRdAtom }) => maxResRdAtom],
  ['max_qp_init_rd_atom', ({ maxQpInitRdAtom }) => maxQpInitRdAtom],
  ['max_ee_init_rd_atom', NONE],
  ['atomic_cap', ({ atomicCap }) => `${atomicCapabilities[atomicCap]} (${atomicCap})`],
  ['max_ee', NONE],
  ['max_rdd', NONE],
  ['max_mw', NONE],
  ['max_raw_ipv6_qp', NONE],
  ['max_raw_ethy_qp', NONE],
  ['max_mcast_grp', ({ maxMcastGrp }) => maxMcastGrp],
  ['max_mcast_qp_attach', ({ maxMcastQpAttach }) => maxMcastQpAttach],
  ['max_total_mcast_qp_attach', ({ maxTotalMcastQpAttach }) => maxTotalMcastQpAttach],
  ['max_ah', ({ maxAh }) => maxAh],
  ['max_fmr', NONE],
  ['max_srq', ({ maxSrq }) => maxSrq],
  ['max_srq_wr', ({ maxSrqWr }) => maxSrqWr],
  ['max_srq_sge', ({ maxSrqSge }) => maxSrqSge],
  ['max_pkeys', ({ maxPkeys }) => maxPkeys],
  ['local_ca_ack_delay', ({ localCaAckDelay }) => localCaAckDelay],
];

/** The mask, followed by a line for each bit that is set. */
function flagLines({ deviceCapFlags }: Device): string {
  const names = Object.entries(DeviceCapFlag).filter(([, bit]) => (deviceCapFlags & bit) !== 0);
  return [hex(deviceCapFlags, 8), ...names.map(([name]) => `\t\t\t\t\t${name}`)].join('\n');
}

/** Features that no device of this kind offers: on-demand paging of connections, offloads, rate limits. */
const notOffered = [
  '\tgeneral_odp_caps:',
  ...['rc', 'uc', 'ud', 'xrc'].flatMap((service) => [`\t${service}_odp_caps:`, '\t\t\t\t\tNO SUPPORT']),
];
const offloads = [
  '\ttso_caps:',
  '\t\tmax_tso:\t\t\t0',
  '\trss_caps:',
  '\t\tmax_rwq_indirection_tables:\t\t\t0',
  '\t\tmax_rwq_indirection_table_size:\t\t\t0',
  '\t\trx_hash_function:\t\t\t\t0x0',
  '\t\trx_hash_fields_mask:\t\t\t\t0x0',
  '\tmax_wq_type_rq:\t\t\t0',
  '\tpacket_pacing_caps:',
  '\t\tqp_rate_limit_min:\t0kbps',
  '\t\tqp_rate_limit_max:\t0kbps',
  '\ttag matching not supported',
];

const hex = (value: number | string | undefined, digits = 0): string =>
  `0x${Number(value ?? 0)
    .toString(16)
    .padStart(digits, '0')}`;

/** The text that ibv_devinfo -v prints (rdma-core 44, libibverbs/examples/devinfo.c). */
export function devinfoText({ name, transport, device, numCompVectors, ports }: DeviceQuery): string {
  const lines = [
    `hca_id:\t${name}`,
    `\ttransport:\t\t\t${transport === 'iWARP' ? 'iWARP (1)' : 'InfiniBand (0)'}`,
    `\tfw_ver:\t\t\t\t${device.fwVer}`,
    `\tnode_guid:\t\t\t${device.nodeGuid}`,
    `\tsys_image_guid:\t\t\t${device.sysImageGuid}`,
    `\tvendor_id:\t\t\t${hex(device.vendorId, 4)}`,
    `\tvendor_part_id:\t\t\t${device.vendorPartId}`,
    `\thw_ver:\t\t\t\t${hex(device.hwVer)}`,
    `\tboard_id:\t\t\t${device.boardId}`,
    `\tphys_port_cnt:\t\t\t${device.physPortCnt}`,
    ...deviceRows.map(([row, value]) => `\t${row}:${tabsAfter(row)}${value(device)}`),
    ...notOffered,
    `\tcompletion timestamp_mask:\t\t\t${device.completionTimestampMask}`,
    `\thca_core_clock:\t\t\t${device.hcaCoreClockKhz}kHZ`,
    `\tdevice_cap_flags_ex:\t\t0x${device.deviceCapFlags.toString(16).toUpperCase()}`,
    ...offloads,
    '',
    '\tcq moderation caps:',
    `\t\tmax_cq_count:\t${device.maxCqModerationCount}`,
    `\t\tmax_cq_period:\t${device.maxCqModerationPeriodUs} us`,
    '',
    `\tnum_comp_vectors:\t\t${numCompVectors}`,
    ...ports.flatMap(portLines),
  ];
  return lines.join('\n');
}

/** Values begin in the fourth column of eight after the first tab. */
const tabsAfter = (row: string): string => '\t'.repeat(Math.max(1, 4 - Math.floor((row.length + 1) / 8)));

function portLines({ number, port, gid0, gids }: DeviceQuery['ports'][number]): string[] {
  const mtu = (code: number): string => `${2 ** (code + 7)} (${code})`;
  return [
    `\t\tport:\t${number}`,
    `\t\t\tstate:\t\t\t${portStates[port.state]} (${port.state})`,
    `\t\t\tmax_mtu:\t\t${mtu(port.maxMtu)}`,
    `\t\t\tactive_mtu:\t\t${mtu(port.activeMtu)}`,
    `\t\t\tsm_lid:\t\t\t${port.smLid}`,
    `\t\t\tport_lid:\t\t${port.lid}`,
    `\t\t\tport_lmc:\t\t0x${port.lmc.toString(16).padStart(2, '0')}`,
    `\t\t\tlink_layer:\t\t${gids === undefined ? 'InfiniBand' : 'Ethernet'}`,
    `\t\t\tmax_msg_sz:\t\t0x${port.maxMsgSz.toString(16)}`,
    `\t\t\tport_cap_flags:\t\t0x${port.portCapFlags.toString(16).padStart(8, '0')}`,
    '\t\t\tport_cap_flags2:\t0x0000',
    `\t\t\tmax_vl_num:\t\t${port.maxVlNum === 0 ? 'invalid value' : 2 ** (port.maxVlNum - 1)} (${port.maxVlNum})`,
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
    ...(gids === undefined
      ? [`\t\t\tGID[  0]:\t\t${gid0}`]
      : gids.map(({ index, gid, type }) => `\t\t\tGID[${String(index).padStart(3)}]:\t\t${gid}, ${type}`)),
  ];
}
