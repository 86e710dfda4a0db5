/**
 * The commands of the HCR: one row per opcode of the sheet, in ascending order. Source: interface sheet 3.1, 3.4.
 *
 * Forms: `box` is a 4 KiB mailbox, `immediate` 64 bits in the parameter itself, `optionalBox` a mailbox or nothing, by the
 * opcode modifier, `optionalImmediate` likewise; `undocumented` where no driver issues the command.
 */
import { DeclarationError } from '../base/index.ts';

export type ParameterForm =
  | 'none'
  | 'box'
  | 'immediate'
  | 'optionalBox'
  | 'optionalImmediate'
  | 'undocumented';

/**
 * Software that issues the command for a physical function without SR-IOV: P probe and remove of the core driver, I InfiniBand
 * driver, E Ethernet driver; o: only with a capability or on a user's action; -: never in this configuration.
 */
export type CommandUse = string;

export interface CommandRow<Opcode extends number = number> {
  readonly opcode: Opcode;
  readonly input: ParameterForm;
  readonly output: ParameterForm;
  /** Contents of the input modifier. */
  readonly inputModifier: string;
  /** Values of the opcode modifier. */
  readonly opcodeModifier: string;
  readonly use: CommandUse;
}

const row = <const Opcode extends number>(
  opcode: Opcode,
  input: ParameterForm,
  output: ParameterForm,
  inputModifier: string,
  opcodeModifier: string,
  use: CommandUse,
): CommandRow<Opcode> => ({ opcode, input, output, inputModifier, opcodeModifier, use });

const unused = <const Opcode extends number>(opcode: Opcode): CommandRow<Opcode> =>
  row(opcode, 'undocumented', 'undocumented', '', '', '-');

export const commands = {
  SYS_EN: row(0x001, 'none', 'immediate', '0', '0', '-'),
  SYS_DIS: row(0x002, 'none', 'none', '0', '0', '-'),
  QUERY_DEV_CAP: row(0x003, 'none', 'box', '0', '0', 'P'),
  QUERY_FW: row(0x004, 'none', 'box', '0', '0', 'P'),
  QUERY_DDR: row(0x005, 'none', 'box', '0', '0', '-'),
  QUERY_ADAPTER: row(0x006, 'none', 'box', '0', '0', 'P'),
  INIT_HCA: row(0x007, 'box', 'none', '0', '0', 'P'),
  CLOSE_HCA: row(0x008, 'none', 'none', '0', 'panic flag', 'P'),
  INIT_PORT: row(0x009, 'none', 'none', 'port', '0', 'IE'),
  CLOSE_PORT: row(0x00a, 'none', 'none', 'port', '0', 'IE'),
  QUERY_HCA: row(0x00b, 'none', 'box', '0', '0', 'PIE'),
  SET_PORT: row(
    0x00c,
    'box',
    'none',
    'port, with a sub-command [15:8] on Ethernet',
    '0 IB, 1 ETH, 4 beacon',
    'PIE',
  ),
  SW2HW_MPT: row(0x00d, 'box', 'none', 'MPT index', '0', 'IE'),
  QUERY_MPT: row(0x00e, 'none', 'box', 'MPT index', '0', 'o'),
  HW2SW_MPT: row(0x00f, 'none', 'optionalBox', 'MPT index', '0 with box, 1 without', 'IE'),
  READ_MTT: row(0x010, 'none', 'box', '', '', '-'),
  WRITE_MTT: row(0x011, 'box', 'none', 'entry count', '0', '-'),
  MAP_EQ: row(0x012, 'immediate', 'none', 'unmap [31], EQN', '0', 'P'),
  SW2HW_EQ: row(0x013, 'box', 'none', 'EQN', '0', 'P'),
  HW2SW_EQ: row(0x014, 'none', 'optionalBox', 'EQN', '1 without box', 'P'),
  QUERY_EQ: row(0x015, 'none', 'box', 'EQN', '0', '-'),
  SW2HW_CQ: row(0x016, 'box', 'none', 'CQN', '[0] CQEs already initialised by software', 'IE'),
  HW2SW_CQ: row(0x017, 'none', 'optionalBox', 'CQN', '1 without box', 'IE'),
  QUERY_CQ: row(0x018, 'none', 'box', 'CQN', '0', 'o'),
  RST2INIT_QP: row(0x019, 'box', 'none', 'QPN', '0', 'IE'),
  INIT2RTR_QP: row(0x01a, 'box', 'none', 'QPN', '0', 'IE'),
  RTR2RTS_QP: row(0x01b, 'box', 'none', 'QPN', '0', 'IE'),
  RTS2RTS_QP: row(0x01c, 'box', 'none', 'QPN', '0', 'I'),
  SQERR2RTS_QP: row(0x01d, 'box', 'none', 'QPN', '0', 'I'),
  '2ERR_QP': row(0x01e, 'optionalBox', 'none', 'QPN', '0', 'I'),
  RTS2SQD_QP: row(0x01f, 'optionalBox', 'none', 'event [31], QPN', '0', 'I'),
  SQD2RTS_QP: row(0x020, 'box', 'none', 'QPN', '0', 'I'),
  '2RST_QP': row(0x021, 'none', 'none', 'QPN', '2 Linux, 3 iPXE', 'IE'),
  QUERY_QP: row(0x022, 'none', 'box', 'QPN', '0', 'I'),
  CONF_SPECIAL_QP: row(0x023, 'none', 'none', 'first special QPN, 0 switches off', '0', 'P'),
  MAD_IFC: row(0x024, 'box', 'box', 'source LID [31:16], port [7:0]', 'bits, see mad.ts', 'PI'),
  READ_MCG: row(0x025, 'none', 'box', 'entry index', '0', 'IE'),
  WRITE_MCG: row(
    0x026,
    'box',
    'none',
    'entry index, or port [23:16] and steering type [1]',
    '0 entry, 1 default',
    'IE',
  ),
  MGID_HASH: row(0x027, 'box', 'immediate', '0', '0 IB, 1 ETH with multicast steering', 'IE'),
  QUERY_DEBUG_MSG: row(0x02a, 'none', 'box', '', '', '-'),
  SET_DEBUG_MSG: unused(0x02b),
  MODIFY_CQ: row(0x02c, 'box', 'none', 'CQN', '0 resize, 1 moderation', 'IE'),
  INIT2INIT_QP: row(0x02d, 'box', 'none', 'QPN', '0', 'I'),
  ACCESS_MEM: unused(0x02e),
  SYNC_TPT: row(0x02f, 'none', 'none', '0', '0', 'I'),
  DIAG_RPRT: row(0x030, 'none', 'box', 'port or 0', '2', 'I'),
  NOP: row(0x031, 'none', 'none', '0x1f (Linux)', '0', 'P'),
  SUSPEND_QP: unused(0x032),
  UNSUSPEND_QP: unused(0x033),
  MOD_STAT_CFG: row(0x034, 'optionalBox', 'optionalBox', 'see static-configuration.ts', '0, 1, 2, 3', 'PE'),
  SW2HW_SRQ: row(0x035, 'box', 'none', 'SRQN', '0', 'I'),
  HW2SW_SRQ: row(0x036, 'none', 'optionalBox', 'SRQN', '1 without box', 'I'),
  QUERY_SRQ: row(0x037, 'none', 'box', 'SRQN', '0', 'I'),
  SQD2SQD_QP: row(0x038, 'box', 'none', 'QPN', '0', 'I'),
  CONFIG_DEV: row(0x03a, 'optionalBox', 'optionalBox', '0', '0 set, 1 get', 'PIEo'),
  ACCESS_REG: row(0x03b, 'box', 'box', 'register', '0', 'Eo'),
  ARM_SRQ: row(0x040, 'immediate', 'none', 'SRQN', '0', 'I'),
  QUERY_PORT: row(0x043, 'none', 'box', 'port', '0', 'PE'),
  SET_VLAN_FLTR: row(0x047, 'box', 'none', 'port', '0', 'E'),
  SET_MCAST_FLTR: row(0x048, 'immediate', 'none', 'port', '0 configure, 1 disable, 2 enable', 'E'),
  DUMP_ETH_STATS: row(0x049, 'none', 'box', 'flow [12], reset [8], port', '0', 'E'),
  SENSE_PORT: row(0x04d, 'none', 'immediate', 'port', '0', 'Po'),
  HW_HEALTH_CHECK: row(0x050, 'none', 'none', '0', '0', 'E'),
  SET_VEP: unused(0x052),
  QUERY_IF_STAT: row(0x054, 'none', 'box', 'reset [31], counter', '0', 'PIEo'),
  SET_IF_STAT: unused(0x055),
  QUERY_FUNC: row(0x056, 'none', 'box', '0', '0', 'Po'),
  ARM_COMM_CHANNEL: unused(0x057),
  GEN_EQE: unused(0x058),
  GET_OP_REQ: row(0x059, 'optionalImmediate', 'optionalBox', '', '0 get, 1 acknowledge', 'Po'),
  SET_NODE: row(0x05a, 'box', 'none', '1', '0', 'I'),
  INFORM_FLR_DONE: unused(0x05b),
  VIRT_PORT_MAP: unused(0x05c),
  UPDATE_QP: row(0x061, 'box', 'none', 'QPN', '0', 'IEo'),
  FLOW_STEERING_IB_UC_QP_RANGE: row(0x064, 'immediate', 'none', '0', '0', 'Io'),
  FLOW_ATTACH: row(0x065, 'box', 'immediate', 'size in dwords', '0', 'IEo'),
  FLOW_DETACH: row(0x066, 'immediate', 'none', '0', '0', 'IEo'),
  CONGESTION_CTRL: row(0x068, 'undocumented', 'undocumented', '', '', 'Eo'),
  ALLOCATE_VPP: unused(0x080),
  SET_VPORT_QOS: unused(0x081),
  MAD_DEMUX: row(0x203, 'optionalBox', 'optionalBox', '1', '0 configure, 2 query', 'Po'),
  // Added for on-demand paging, which a ConnectX-3 lacks: the first one has mlx5's number. See docs/reference/deviations.md.
  PAGE_FAULT_RESUME: row(
    0x204,
    'none',
    'none',
    'token of the page request',
    '0 pages are there, 1 refused',
    '-',
  ),
  INVALIDATE_PAGES: row(0x205, 'none', 'none', '0', '0', '-'),
  // Added for iWARP: see tcp-connection.ts.
  OPEN_TCP: row(0x210, 'box', 'immediate', '0', '0 connect, 1 listen', '-'),
  CLOSE_TCP: row(
    0x211,
    'optionalImmediate',
    'none',
    'connection',
    '0 FIN, 1 RST, 2 release, 3 Terminate',
    '-',
  ),
  SEND_TCP: row(0x212, 'box', 'none', 'connection', '0', '-'),
  RECEIVE_TCP: row(0x213, 'none', 'box', 'connection', '0', '-'),
  QUERY_TCP: row(0x214, 'none', 'box', 'connection', '0', '-'),
  // 0xf00 to 0xf0b are a protocol between VF and PF drivers and never reach the hardware; numbers from include/linux/mlx4/cmd.h.
  ALLOC_RES: unused(0xf00),
  FREE_RES: unused(0xf01),
  MCAST_ATTACH: unused(0xf05),
  UCAST_ATTACH: unused(0xf06),
  PROMISC: unused(0xf08),
  QUERY_FUNC_CAP: unused(0xf0a),
  QP_ATTACH: unused(0xf0b),
  RUN_FW: row(0xff6, 'none', 'none', '0', '0', 'P'),
  DISABLE_LAM: unused(0xff7),
  ENABLE_LAM: unused(0xff8),
  UNMAP_ICM: row(0xff9, 'immediate', 'none', 'count of 4 KiB pages', '0', 'PIE'),
  MAP_ICM: row(0xffa, 'box', 'none', 'entry count', '0', 'PIE'),
  UNMAP_ICM_AUX: row(0xffb, 'none', 'none', '0', '0', 'P'),
  MAP_ICM_AUX: row(0xffc, 'box', 'none', 'entry count', '0', 'P'),
  SET_ICM_SIZE: row(0xffd, 'immediate', 'immediate', '0', '0', 'P'),
  UNMAP_FA: row(0xffe, 'none', 'none', '0', '0', 'P'),
  MAP_FA: row(0xfff, 'box', 'none', 'entry count', '0', 'P'),
} as const satisfies Readonly<Record<string, CommandRow>>;

export type CommandName = keyof typeof commands;

/** Opcode numbers by name: `Opcode.QUERY_FW` is 0x004. */
export const Opcode = Object.fromEntries(
  Object.entries(commands).map(([name, { opcode }]) => [name, opcode]),
) as { readonly [Name in CommandName]: (typeof commands)[Name]['opcode'] };
export type Opcode = (typeof commands)[CommandName]['opcode'];

const nameByOpcode = namesInOrder();

/** The command's name, or undefined for an opcode that is not in the table. */
export const commandNameOf = (opcode: number): CommandName | undefined => nameByOpcode.get(opcode);

function namesInOrder(): ReadonlyMap<number, CommandName> {
  const names = new Map<number, CommandName>();
  let last = 0;
  for (const [name, { opcode }] of Object.entries(commands)) {
    if (opcode <= last) throw new DeclarationError(`commands.${name} opcode`, opcode, `more than ${last}`);
    last = opcode;
    names.set(opcode, name as CommandName);
  }
  return names;
}

/** Input modifier bit 31 of MAP_EQ: unmaps the events from the EQ. */
export const mapEqUnmap = 0x8000_0000;

/** Input modifier bit 31 of RTS2SQD_QP: sends event 0x03 when the send queue is drained. */
export const sqdEventRequest = 0x8000_0000;

/** Opcode modifiers of 2RST_QP: both mean a reset without flush completions. */
export const resetOpcodeModifier = { linux: 2, ipxe: 3 } as const;
