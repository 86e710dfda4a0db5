/** Rules about posting a command: the register, its parameters, the life cycle of the device, the state of the object. */
import {
  type CommandName,
  cqc,
  eqc,
  hcr,
  initHca,
  mailboxBytes,
  QpState,
  type QpTransitionName,
  qpMailbox,
  qpTransitions,
  ServiceType,
  srqc,
  uarPageBytes,
} from '../../abi/index.ts';
import type { Decoded } from '../../base/index.ts';
import { inBoxOf, objectsOf } from '../command-boxes.ts';
import type { ObservedCommand } from '../follow/command-register.ts';
import { type DeviceView, type ObjectTable, Phase } from '../follow/device-view.ts';
import { hasTcpConnections } from '../follow/icm-map.ts';
import { anyLayout, reservedBitsIn } from '../layout-fields.ts';
import { hex, type LintContext } from './context.ts';

type NamedCommand = ObservedCommand & { readonly name: CommandName };

const withoutFirmware: ReadonlySet<CommandName> = new Set<CommandName>([
  'QUERY_FW',
  'MAP_FA',
  'UNMAP_FA',
  'RUN_FW',
  'SYS_EN',
  'SYS_DIS',
  'ENABLE_LAM',
  'DISABLE_LAM',
]);

const withoutInitHca: ReadonlySet<CommandName> = new Set<CommandName>([
  'QUERY_DEV_CAP',
  'QUERY_ADAPTER',
  'QUERY_DDR',
  'QUERY_PORT',
  'QUERY_HCA',
  'QUERY_FUNC',
  'SENSE_PORT',
  'MOD_STAT_CFG',
  'NOP',
  'HW_HEALTH_CHECK',
  'SET_ICM_SIZE',
  'MAP_ICM_AUX',
  'UNMAP_ICM_AUX',
  'MAP_ICM',
  'UNMAP_ICM',
  'INIT_HCA',
  'CONFIG_DEV',
  'MAD_DEMUX',
]);

/** The register itself. */
export function checkRegister(
  lint: LintContext,
  command: ObservedCommand,
  before: ObservedCommand | undefined,
  lastToggle: number,
  tokens: ReadonlySet<number>,
): void {
  const object = command.name ?? hex(command.opcode);
  if (before !== undefined)
    lint.report(
      'command-busy',
      object,
      `${before.name ?? hex(before.opcode)} was not seen to have been accepted`,
    );
  if (command.toggle === lastToggle)
    lint.report('command-toggle', 'HCR', `T is ${command.toggle} twice running`);
  if (command.isByEvent && tokens.has(command.token))
    lint.report('command-token', object, `token ${hex(command.token)} is outstanding already`);
  const registers = command.registers.slice();
  registers[hcr.fields.status.wordOffset] = 0;
  const reserved = reservedBitsIn(anyLayout(hcr), registers);
  if (reserved !== undefined)
    lint.report(
      'hcr-reserved',
      `dword ${reserved.offset >> 2}`,
      `bits ${hex(reserved.bits)} of byte ${hex(reserved.offset)}`,
    );
  if (command.name === undefined) lint.report('command-opcode', hex(command.opcode), 'no such command');
}

/** Its parameters and mailbox. */
export function checkParameters(lint: LintContext, command: NamedCommand): void {
  const { name, row, inputModifier, opcodeModifier, inParam, outParam } = command;
  if (row?.inputModifier === '0' && inputModifier !== 0)
    lint.report('command-modifier', name, `input modifier ${hex(inputModifier)}`);
  if (row?.opcodeModifier === '0' && opcodeModifier !== 0)
    lint.report('command-modifier', name, `opcode modifier ${opcodeModifier}`);
  if (row?.input === 'box') checkBox(lint, name, inParam);
  if (row?.output === 'box') checkBox(lint, name, outParam);
  if (command.inBox === undefined || name === 'MAD_IFC') return;
  const parts = inBoxOf(command, command.inBox, hasTcpConnections(lint.view.profile));
  for (const { title, layout, offset } of parts) {
    const reserved = reservedBitsIn(layout, command.inBox, offset, parts);
    if (reserved !== undefined)
      lint.report(
        'mailbox-reserved',
        `${name} ${title}`,
        `bits ${hex(reserved.bits)} of byte ${hex(reserved.offset)} of ${layout.name} (${layout.source})`,
      );
  }
}

function checkBox(lint: LintContext, name: string, address: number): void {
  if (address % mailboxBytes !== 0 || address === 0)
    lint.report('command-mailbox', name, `at ${hex(address)}`);
  else if (!lint.isMemory(address, mailboxBytes))
    lint.report('command-mailbox', name, `at ${hex(address)}, which is not memory`);
}

/** Checks the command's position in the sequence of reset, RUN_FW, INIT_HCA and CLOSE_HCA. */
export function checkPhase(lint: LintContext, { name }: NamedCommand): void {
  const { view } = lint;
  if (withoutFirmware.has(name)) {
    const wanted = view.firmware?.firmwarePages ?? 0;
    if (name === 'RUN_FW' && view.firmwarePages < wanted)
      lint.report('command-phase', name, `${view.firmwarePages} of ${wanted} firmware pages are mapped`);
    return;
  }
  if (view.phase === Phase.RESET) lint.report('command-phase', name, 'before RUN_FW');
  else if (view.phase === Phase.FIRMWARE && !withoutInitHca.has(name))
    lint.report('command-phase', name, 'before INIT_HCA, or after CLOSE_HCA');
  else if (view.phase === Phase.INITIALISED && name === 'INIT_HCA')
    lint.report('command-phase', name, 'a second time');
}

interface Range {
  readonly first: number;
  readonly end: number;
}

/** The valid numbers of a command's object. */
function rangesOf(view: DeviceView): { readonly [kind: string]: Range } {
  const { capabilities: cap, profile } = view;
  if (cap === undefined || profile === undefined) return {};
  const reservedEqs = Math.min(4 * cap.reservedUars, 2 ** cap.logReservedEqs);
  return {
    cqn: { first: 2 ** cap.logReservedCqs, end: 2 ** profile.logCqs },
    srqn: { first: 2 ** cap.logReservedSrqs, end: 2 ** profile.logSrqs },
    eqn: { first: reservedEqs, end: 2 ** profile.logEqs },
    mpt: { first: 2 ** cap.logReservedMpts, end: 2 ** profile.logDmpts },
  };
}

/** Numbers and sizes against the limits of QUERY_DEV_CAP and INIT_HCA. */
export function checkIndex(lint: LintContext, command: NamedCommand): void {
  const { capabilities } = lint.view;
  if (capabilities === undefined) return;
  const objects = objectsOf(command);
  const ranges = rangesOf(lint.view);
  for (const [kind, range] of Object.entries(ranges)) {
    const number = objects[kind as keyof typeof objects];
    if (number !== undefined && (number < range.first || number >= range.end))
      lint.report(
        'command-index',
        `${command.name} ${kind} ${hex(number)}`,
        `is not from ${hex(range.first)} to ${hex(range.end - 1)}`,
      );
  }
  const { port, qpn } = objects;
  if (port !== undefined && (port < 1 || port > capabilities.ports))
    lint.report('command-index', `${command.name} port ${port}`, `the device has ${capabilities.ports}`);
  if (qpn !== undefined && (qpn & 0x7f_ffff) < 2 ** capabilities.logReservedQps)
    lint.report('command-index', `${command.name} QP ${hex(qpn)}`, 'is reserved for the firmware');
  if (command.inBox !== undefined) checkSizes(lint, command, command.inBox, capabilities);
}

type Capabilities = NonNullable<DeviceView['capabilities']>;

function checkSizes(lint: LintContext, { name }: NamedCommand, box: Uint8Array, cap: Capabilities): void {
  // If the device states no limit, the driver cannot respect one.
  const limit = (what: string, value: number, most: number): void => {
    if (most > 0 && value > most)
      lint.report('command-index', `${name} ${what}`, `is ${value}, at most ${most}`);
  };
  // The firmware's own objects are not checked: Linux reads their number before it knows that the firmware has any
  // (mlx4_dev_cap). It therefore puts SRQs without XRC into domain 0 and numbers its first domain 1
  // (reference/golden/x-xrc-pingpong.jsonl).
  const checkDomain = (domain: number): void => limit('xrcDomain', domain, 2 ** cap.logMaxXrcDomains - 1);
  if (name === 'SW2HW_CQ' || name === 'MODIFY_CQ') {
    const context = cqc.decode(box);
    limit('logEntries', context.logEntries, cap.logMaxCqEntries);
    if (name === 'SW2HW_CQ') checkUar(lint, name, context.uarPage, cap);
  } else if (name === 'SW2HW_EQ') limit('logEntries', eqc.decode(box).logEntries, cap.logMaxEqEntries);
  else if (name === 'SW2HW_SRQ') {
    const context = srqc.decode(box);
    limit('logWqes', context.logWqes, cap.logMaxSrqWqes);
    checkDomain(context.xrcDomain);
  } else if (name === 'RST2INIT_QP') {
    const { context } = qpMailbox.decode(box);
    const hasQueue = context.srqAttached === 0 && context.doorbellRecordAddress !== 0n;
    limit('sqLogCount', context.sqLogCount, cap.logMaxQpWqes);
    if (hasQueue) limit('rqLogCount', context.rqLogCount, cap.logMaxQpWqes);
    checkUar(lint, name, context.uarPage, cap);
    if (context.serviceType === ServiceType.XRC) checkDomain(context.xrcDomain);
  } else if (name === 'INIT_HCA') checkProfile(initHca.decode(box), cap, limit);
}

function checkUar(lint: LintContext, name: string, page: number, cap: Capabilities): void {
  const pages = 2 ** (cap.logUarAreaMib + 20) / uarPageBytes;
  if (page < cap.reservedUars || page >= pages)
    lint.report(
      'command-index',
      `${name} uarPage`,
      `is ${hex(page)}, from ${cap.reservedUars} to ${hex(pages - 1)}`,
    );
}

function checkProfile(
  profile: Decoded<typeof initHca>,
  cap: Capabilities,
  limit: (what: string, value: number, most: number) => void,
): void {
  limit('logQps', profile.logQps, cap.logMaxQps);
  limit('logSrqs', profile.logSrqs, cap.logMaxSrqs);
  limit('logCqs', profile.logCqs, cap.logMaxCqs);
  limit('logEqs', profile.logEqs, cap.logMaxEqs);
  limit('logDmpts', profile.logDmpts, cap.logMaxMpts);
}

interface ObjectUse {
  readonly table: ObjectTable;
  readonly word: string;
  readonly use: 'create' | 'use';
}

const uses: { readonly [Name in CommandName]?: ObjectUse } = {
  SW2HW_CQ: { table: 'cqs', word: 'CQ', use: 'create' },
  HW2SW_CQ: { table: 'cqs', word: 'CQ', use: 'use' },
  MODIFY_CQ: { table: 'cqs', word: 'CQ', use: 'use' },
  QUERY_CQ: { table: 'cqs', word: 'CQ', use: 'use' },
  SW2HW_EQ: { table: 'eqs', word: 'EQ', use: 'create' },
  HW2SW_EQ: { table: 'eqs', word: 'EQ', use: 'use' },
  MAP_EQ: { table: 'eqs', word: 'EQ', use: 'use' },
  SW2HW_SRQ: { table: 'srqs', word: 'SRQ', use: 'create' },
  HW2SW_SRQ: { table: 'srqs', word: 'SRQ', use: 'use' },
  ARM_SRQ: { table: 'srqs', word: 'SRQ', use: 'use' },
  QUERY_SRQ: { table: 'srqs', word: 'SRQ', use: 'use' },
  SW2HW_MPT: { table: 'mpts', word: 'MPT', use: 'create' },
  HW2SW_MPT: { table: 'mpts', word: 'MPT', use: 'use' },
};

/** The state of the command's object. */
export function checkState(lint: LintContext, command: NamedCommand): void {
  const { view } = lint;
  if (view.phase !== Phase.INITIALISED) return;
  const { name } = command;
  if (name in qpTransitions) return checkTransition(lint, command, name as QpTransitionName);
  const use = uses[name];
  if (use === undefined) return;
  const number = Object.values(objectsOf(command))[0]!;
  const object = `${use.word} ${hex(number)}`;
  const isLive = view[use.table].has(number);
  if (use.use === 'create' && isLive)
    lint.report('command-state', object, `${name}: the device has it already`);
  if (name === 'SW2HW_SRQ' && command.inBox !== undefined)
    checkCqns(lint, object, [['receive', srqc.decode(command.inBox).cqn]]);
  if (use.use === 'create' || isLive) return;
  const wasDestroyed = view.destroyed[use.table].has(number);
  lint.report(
    wasDestroyed ? 'use-after-destroy' : 'command-state',
    object,
    `${name}: the device does not have it`,
  );
}

/** Possible states of a QP besides the one that the driver set: the device itself makes some transitions. */
const reachable: { readonly [state: number]: readonly QpState[] } = {
  [QpState.INIT]: [QpState.ERR],
  [QpState.RTR]: [QpState.ERR],
  [QpState.RTS]: [QpState.SQER, QpState.ERR],
  [QpState.SQD]: [QpState.SQ_DRAINING, QpState.SQER, QpState.ERR],
};

function checkTransition(lint: LintContext, command: NamedCommand, name: QpTransitionName): void {
  const qpn = objectsOf(command).qpn!;
  const state = lint.view.qps.get(qpn)?.state ?? QpState.RST;
  const possible: readonly number[] = [state, ...(reachable[state] ?? [])];
  const from: readonly number[] = qpTransitions[name].from;
  const object = `QP ${hex(qpn)}`;
  const stateName = Object.entries(QpState).find(([, code]) => code === state)![0];
  if (!possible.some((one) => from.includes(one)))
    lint.report('command-state', object, `${name} in state ${stateName}`);
  if (name !== 'RST2INIT_QP' || command.inBox === undefined) return;
  const { context } = qpMailbox.decode(command.inBox);
  checkCqns(lint, object, [
    ['send', context.sendCqn],
    ['receive', context.receiveCqn],
  ]);
}

function checkCqns(
  lint: LintContext,
  object: string,
  named: readonly (readonly [what: string, cqn: number])[],
): void {
  for (const [what, cqn] of named)
    if (cqn !== 0 && !lint.view.cqs.has(cqn) && lint.view.destroyed.cqs.has(cqn))
      lint.report('use-after-destroy', `CQ ${hex(cqn)}`, `as ${what} CQ of ${object}`);
}
