/**
 * Commands of this device: the device state that each needs, its cost, and the function that executes it. An absent
 * opcode ends with status 0x02: commands of virtual functions, those that no driver issues, and, with ports of
 * InfiniBand, those of Ethernet. Source: interface sheet 3.4.
 */
import { type CommandName, CommandStatus, commands } from '../../../../abi/index.ts';
import type { Commands, ControlConfig, StartedCommand } from '../../commands/index.ts';
import { type CommandRequest, demand, type OutImmediate, reject, type Steps } from '../../commands/index.ts';
import {
  closeTcp,
  openTcp,
  queryTcp,
  receiveTcp,
  sendTcp,
  type TcpCommand,
} from '../../iwarp/commands/index.ts';
import {
  createCompletionQueue,
  destroyCompletionQueue,
  modifyCompletionQueue,
  queryCompletionQueue,
} from './completion-queues.ts';
import { type DeviceState, SystemPhase } from './device-state.ts';
import {
  configureDevice,
  dumpEthernetStatistics,
  filterGroups,
  filterVlans,
  queryFlowCounter,
} from './ethernet-ports.ts';
import { createEventQueue, destroyEventQueue, mapEventQueue, queryEventQueue } from './event-queues.ts';
import {
  closeDevice,
  initialise,
  mapAuxiliary,
  mapFirmwareArea,
  mapIcm,
  queryAdapterBox,
  queryCapabilities,
  queryFirmware,
  queryHca,
  runFirmware,
  setIcmSize,
  unmapAuxiliary,
  unmapFirmwareArea,
  unmapIcm,
} from './firmware.ts';
import { attachFlow, detachFlow } from './flow-steering.ts';
import { readInBox, writeOutBox } from './mailboxes.ts';
import {
  activateRegion,
  deactivateRegion,
  invalidatePages,
  queryRegion,
  readTranslations,
  resumePageFault,
  synchroniseTranslation,
  writeTranslations,
} from './memory-regions.ts';
import { configureStatically, doNothing, reportDiagnostics, sensePort } from './miscellaneous.ts';
import { hashGroup, readGroup, writeGroup } from './multicast.ts';
import { closePort, exchangeMad, openPort, queryPortBox, setNodeDescription, setPort } from './ports.ts';
import {
  configureSpecialQueuePairs,
  failQueuePair,
  initialiseQueuePair,
  queryQueuePair,
  resetQueuePair,
  transitionOf,
} from './queue-pairs.ts';
import {
  armSharedQueue,
  createSharedQueue,
  destroySharedQueue,
  querySharedQueue,
} from './shared-receive-queues.ts';

/** The function of a command; one that never waits is a plain function. */
type Body = (
  device: DeviceState,
  request: CommandRequest,
) => Steps<OutImmediate | undefined> | OutImmediate | undefined;
type Cost = Extract<keyof ControlConfig, `${string}Cycles`>;

interface Row {
  readonly needs: SystemPhase;
  readonly cost: Cost;
  readonly body: Body;
}

/** A command of TCP connections as one of this card. */
function ofTcp(command: TcpCommand): Body {
  return (device, request) => {
    const { tcp, domain, ports } = device.parts;
    if (tcp === undefined) return reject(CommandStatus.BAD_OP);
    return command({ tcp, domain, portCount: ports.length }, request, {
      readIn: (lengthBytes) => readInBox(request, lengthBytes),
      writeOut: (bytes) => writeOutBox(request, bytes),
    });
  };
}

const row = (needs: SystemPhase, cost: Cost, body: Body): Row => ({ needs, cost, body });
const { OFF, FIRMWARE, INITIALISED } = SystemPhase;

const rows: { readonly [Name in CommandName]?: Row } = {
  QUERY_FW: row(OFF, 'queryCycles', queryFirmware),
  MAP_FA: row(OFF, 'memoryMapCycles', mapFirmwareArea),
  UNMAP_FA: row(OFF, 'memoryMapCycles', unmapFirmwareArea),
  RUN_FW: row(OFF, 'initialiseCycles', runFirmware),
  QUERY_DEV_CAP: row(FIRMWARE, 'queryCycles', queryCapabilities),
  QUERY_ADAPTER: row(FIRMWARE, 'queryCycles', queryAdapterBox),
  QUERY_PORT: row(FIRMWARE, 'queryCycles', queryPortBox),
  QUERY_HCA: row(FIRMWARE, 'queryCycles', queryHca),
  SENSE_PORT: row(FIRMWARE, 'queryCycles', sensePort),
  MOD_STAT_CFG: row(FIRMWARE, 'trivialCycles', configureStatically),
  NOP: row(FIRMWARE, 'trivialCycles', doNothing),
  HW_HEALTH_CHECK: row(FIRMWARE, 'trivialCycles', doNothing),
  SET_ICM_SIZE: row(FIRMWARE, 'trivialCycles', setIcmSize),
  MAP_ICM_AUX: row(FIRMWARE, 'memoryMapCycles', mapAuxiliary),
  UNMAP_ICM_AUX: row(FIRMWARE, 'memoryMapCycles', unmapAuxiliary),
  MAP_ICM: row(FIRMWARE, 'memoryMapCycles', mapIcm),
  UNMAP_ICM: row(FIRMWARE, 'memoryMapCycles', unmapIcm),
  INIT_HCA: row(FIRMWARE, 'initialiseCycles', initialise),
  CLOSE_HCA: row(INITIALISED, 'initialiseCycles', closeDevice),
  INIT_PORT: row(INITIALISED, 'portCycles', openPort),
  CLOSE_PORT: row(INITIALISED, 'portCycles', closePort),
  SET_PORT: row(INITIALISED, 'portCycles', setPort),
  SET_VLAN_FLTR: row(INITIALISED, 'portCycles', filterVlans),
  SET_MCAST_FLTR: row(INITIALISED, 'portCycles', filterGroups),
  FLOW_ATTACH: row(INITIALISED, 'portCycles', attachFlow),
  FLOW_DETACH: row(INITIALISED, 'portCycles', detachFlow),
  CONFIG_DEV: row(INITIALISED, 'portCycles', configureDevice),
  QUERY_IF_STAT: row(INITIALISED, 'queryCycles', queryFlowCounter),
  DUMP_ETH_STATS: row(INITIALISED, 'queryCycles', dumpEthernetStatistics),
  MAD_IFC: row(INITIALISED, 'managementCycles', exchangeMad),
  SET_NODE: row(INITIALISED, 'managementCycles', setNodeDescription),
  MGID_HASH: row(INITIALISED, 'managementCycles', hashGroup),
  READ_MCG: row(INITIALISED, 'managementCycles', readGroup),
  WRITE_MCG: row(INITIALISED, 'managementCycles', writeGroup),
  DIAG_RPRT: row(INITIALISED, 'queryCycles', reportDiagnostics),
  SW2HW_EQ: row(INITIALISED, 'queueCycles', createEventQueue),
  HW2SW_EQ: row(INITIALISED, 'queueCycles', destroyEventQueue),
  QUERY_EQ: row(INITIALISED, 'queryCycles', queryEventQueue),
  MAP_EQ: row(INITIALISED, 'queueCycles', mapEventQueue),
  SW2HW_CQ: row(INITIALISED, 'queueCycles', createCompletionQueue),
  HW2SW_CQ: row(INITIALISED, 'queueCycles', destroyCompletionQueue),
  QUERY_CQ: row(INITIALISED, 'queryCycles', queryCompletionQueue),
  MODIFY_CQ: row(INITIALISED, 'queueCycles', modifyCompletionQueue),
  SW2HW_SRQ: row(INITIALISED, 'queueCycles', createSharedQueue),
  HW2SW_SRQ: row(INITIALISED, 'queueCycles', destroySharedQueue),
  QUERY_SRQ: row(INITIALISED, 'queryCycles', querySharedQueue),
  ARM_SRQ: row(INITIALISED, 'queueCycles', armSharedQueue),
  SW2HW_MPT: row(INITIALISED, 'regionCycles', activateRegion),
  HW2SW_MPT: row(INITIALISED, 'regionCycles', deactivateRegion),
  QUERY_MPT: row(INITIALISED, 'queryCycles', queryRegion),
  WRITE_MTT: row(INITIALISED, 'regionCycles', writeTranslations),
  READ_MTT: row(INITIALISED, 'queryCycles', readTranslations),
  SYNC_TPT: row(INITIALISED, 'regionCycles', synchroniseTranslation),
  PAGE_FAULT_RESUME: row(INITIALISED, 'trivialCycles', resumePageFault),
  INVALIDATE_PAGES: row(INITIALISED, 'trivialCycles', invalidatePages),
  CONF_SPECIAL_QP: row(INITIALISED, 'trivialCycles', configureSpecialQueuePairs),
  RST2INIT_QP: row(INITIALISED, 'queuePairCycles', initialiseQueuePair),
  INIT2INIT_QP: row(INITIALISED, 'queuePairCycles', transitionOf('INIT2INIT_QP')),
  INIT2RTR_QP: row(INITIALISED, 'queuePairCycles', transitionOf('INIT2RTR_QP')),
  RTR2RTS_QP: row(INITIALISED, 'queuePairCycles', transitionOf('RTR2RTS_QP')),
  RTS2RTS_QP: row(INITIALISED, 'queuePairCycles', transitionOf('RTS2RTS_QP')),
  SQERR2RTS_QP: row(INITIALISED, 'queuePairCycles', transitionOf('SQERR2RTS_QP')),
  SQD2SQD_QP: row(INITIALISED, 'queuePairCycles', transitionOf('SQD2SQD_QP')),
  SQD2RTS_QP: row(INITIALISED, 'queuePairCycles', transitionOf('SQD2RTS_QP')),
  RTS2SQD_QP: row(INITIALISED, 'queuePairCycles', transitionOf('RTS2SQD_QP')),
  '2ERR_QP': row(INITIALISED, 'queuePairCycles', failQueuePair),
  '2RST_QP': row(INITIALISED, 'queuePairCycles', resetQueuePair),
  QUERY_QP: row(INITIALISED, 'queryCycles', queryQueuePair),
  OPEN_TCP: row(INITIALISED, 'queuePairCycles', ofTcp(openTcp)),
  CLOSE_TCP: row(INITIALISED, 'queuePairCycles', ofTcp(closeTcp)),
  SEND_TCP: row(INITIALISED, 'trivialCycles', ofTcp(sendTcp)),
  RECEIVE_TCP: row(INITIALISED, 'trivialCycles', ofTcp(receiveTcp)),
  QUERY_TCP: row(INITIALISED, 'queryCycles', ofTcp(queryTcp)),
};

/** Commands that only a card with iWARP has. */
const tcpCommands: ReadonlySet<number> = new Set(
  (['OPEN_TCP', 'CLOSE_TCP', 'SEND_TCP', 'RECEIVE_TCP', 'QUERY_TCP'] as const).map(
    (name) => commands[name].opcode,
  ),
);

/** Commands that only ports of Ethernet have. */
const ethernetCommands: ReadonlySet<number> = new Set(
  (
    [
      'SET_VLAN_FLTR',
      'SET_MCAST_FLTR',
      'DUMP_ETH_STATS',
      'QUERY_IF_STAT',
      'CONFIG_DEV',
      'FLOW_ATTACH',
      'FLOW_DETACH',
    ] as const
  ).map((name) => commands[name].opcode),
);

const rowByOpcode = new Map<number, Row>();
for (const [name, entry] of Object.entries(rows))
  rowByOpcode.set(commands[name as CommandName].opcode, entry);

/** The commands on a device, as the command processor begins them. */
export class CommandTable implements Commands {
  readonly #device: DeviceState;
  readonly #config: ControlConfig;

  constructor(device: DeviceState, config: ControlConfig) {
    this.#device = device;
    this.#config = config;
  }

  start(request: CommandRequest): StartedCommand {
    const entry = rowByOpcode.get(request.opcode);
    demand(entry !== undefined && this.#hasCommand(request.opcode), CommandStatus.BAD_OP);
    demand(this.#device.phase >= entry.needs, CommandStatus.BAD_SYS_STATE);
    return { steps: stepsOf(entry.body, this.#device, request), cycles: this.#config[entry.cost] };
  }

  #hasCommand(opcode: number): boolean {
    const { linkLayer } = this.#device.parts.capabilities;
    if (tcpCommands.has(opcode)) return this.#device.parts.tcp !== undefined;
    return linkLayer === 'ethernet' || !ethernetCommands.has(opcode);
  }
}

/** The command as steps; its body begins when its cycles have been spent. */
function* stepsOf(body: Body, device: DeviceState, request: CommandRequest): Steps<OutImmediate | undefined> {
  const result = body(device, request);
  return result !== undefined && 'next' in result ? yield* result : result;
}
