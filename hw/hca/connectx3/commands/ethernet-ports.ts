/**
 * Commands that set up an Ethernet port: the Ethernet forms of SET_PORT, the filters SET_VLAN_FLTR and SET_MCAST_FLTR,
 * DUMP_ETH_STATS, and those of RoCE. A port of InfiniBand has none of them. Source: interface sheet 3.12, 3.18, 3.19.
 */
import {
  CommandStatus,
  configDev,
  MulticastFilterForm,
  MulticastMode,
  multicastFilterEntry,
  queryIfStat,
  SetPortEthernet,
  setPortGeneral,
  setPortGidTable,
  setPortMacTable,
  setPortReceiveQps,
  setPortRoceAddresses,
  setPortVlanTable,
  setVlanFilter,
  statisticsRequest,
  vlanFilterMaskOf,
  vlanIdCount,
} from '../../../../abi/index.ts';
import { type CommandRequest, demand, reject, type Steps } from '../../commands/index.ts';
import type { EthernetSide, HcaPort, RoceSide } from '../../port/index.ts';
import { hasChecksumSums } from './device-capabilities.ts';
import type { DeviceState } from './device-state.ts';
import { readInBox, writeOutBox } from './mailboxes.ts';

const portMask = 0xff;
/** Values of SET_PORT general's `roceMode`, and of a RoCE address's `version`. */
const bothRoceVersions = 2;
const routableVersion = 2;
const NO_ENTRY = -1;

/** SET_PORT with opcode modifier 1: sub-command << 8 | port. */
export function* setEthernetPort(port: HcaPort, request: CommandRequest): Steps<undefined> {
  const side = port.ethernet ?? reject(CommandStatus.BAD_OP);
  const subCommand = request.inputModifier >>> 8;
  switch (subCommand) {
    case SetPortEthernet.GENERAL:
      return yield* setGeneral(side, request);
    case SetPortEthernet.RQP_CALC:
      return yield* setReceiveQps(side, request);
    case SetPortEthernet.MAC_TABLE:
      return yield* setMacTable(side, request);
    case SetPortEthernet.VLAN_TABLE:
      return yield* setVlanTable(side, request);
    case SetPortEthernet.GID_TABLE:
      return yield* setGidTable(port, side.roce ?? reject(CommandStatus.BAD_OP), request);
    case SetPortEthernet.ROCE_ADDR:
      return yield* setRoceAddresses(port, side.roce ?? reject(CommandStatus.BAD_OP), request);
    default:
      return reject(CommandStatus.BAD_OP);
  }
}

/** Sets the MTU and the pauses, of all traffic and of single priorities. Enables all versions of RoCE that the port has. */
function* setGeneral(side: EthernetSide, request: CommandRequest): Steps<undefined> {
  const { steering, frameLimitBytes, roce } = side;
  const wanted = setPortGeneral.decode(yield* readInBox(request, setPortGeneral.sizeBytes));
  demand(wanted.phvValid === 0 && wanted.ignoreFcsValid === 0, CommandStatus.BAD_PARAM);
  demand(wanted.userMacValid === 0, CommandStatus.BAD_PARAM);
  const isModeRight = roce?.hasVersion2 === true && wanted.roceMode === bothRoceVersions;
  demand(wanted.roceModeValid === 0 || isModeRight, CommandStatus.BAD_PARAM);
  if (wanted.mtuValid === 1) {
    demand(wanted.mtuBytes <= frameLimitBytes, CommandStatus.BAD_PARAM);
    steering.longestBytes = wanted.mtuBytes;
  }
  side.setPauses(
    wanted.txPauseValid === 1 ? wanted.txGlobalPause === 1 : undefined,
    wanted.rxPauseValid === 1 ? wanted.rxGlobalPause === 1 : undefined,
  );
  side.setPriorityPauses(
    wanted.txPauseValid === 1 ? wanted.txPriorityPause : undefined,
    wanted.rxPauseValid === 1 ? wanted.rxPriorityPause : undefined,
  );
  return undefined;
}

function* setReceiveQps({ steering }: EthernetSide, request: CommandRequest): Steps<undefined> {
  const wanted = setPortReceiveQps.decode(yield* readInBox(request, setPortReceiveQps.sizeBytes));
  // Groups by a table would be those of an Ethernet multicast table, which is not offered.
  demand(wanted.multicastMode === MulticastMode.DEFAULT_QP, CommandStatus.BAD_PARAM);
  steering.receiveQps = {
    baseQpn: wanted.baseQpn & 0xff_ffff,
    isPromiscuous: wanted.promiscuous === 1,
    promiscuousQpn: wanted.promiscuousQpn,
    multicastQpn: wanted.multicastQpn,
  };
  return undefined;
}

function* setMacTable({ steering }: EthernetSide, request: CommandRequest): Steps<undefined> {
  const { entries } = setPortMacTable.decode(yield* readInBox(request, setPortMacTable.sizeBytes));
  entries.forEach(({ valid, mac }, index) => {
    steering.macs[index] = valid === 1 ? mac : NO_ENTRY;
  });
  return undefined;
}

function* setVlanTable({ steering }: EthernetSide, request: CommandRequest): Steps<undefined> {
  const { entries } = setPortVlanTable.decode(yield* readInBox(request, setPortVlanTable.sizeBytes));
  entries.forEach(({ valid, vlanId }, index) => {
    steering.vlans[index] = valid === 1 ? vlanId : NO_ENTRY;
  });
  return undefined;
}

/** The GIDs of RoCE v1. */
function* setGidTable(port: HcaPort, roce: RoceSide, request: CommandRequest): Steps<undefined> {
  const { gids } = setPortGidTable.decode(yield* readInBox(request, setPortGidTable.sizeBytes));
  for (const [index, gid] of gids.slice(0, roce.isRoutable.length).entries()) port.setGid(index, gid);
  roce.isRoutable.fill(0);
  return undefined;
}

/** Sets the addresses of both versions. The GID itself shows whether it is an address of IPv4 or of IPv6. */
function* setRoceAddresses(port: HcaPort, roce: RoceSide, request: CommandRequest): Steps<undefined> {
  demand(roce.hasVersion2, CommandStatus.BAD_OP);
  const { entries } = setPortRoceAddresses.decode(yield* readInBox(request, setPortRoceAddresses.sizeBytes));
  for (const [index, { gid, version }] of entries.slice(0, roce.isRoutable.length).entries()) {
    port.setGid(index, gid);
    roce.isRoutable[index] = version === routableVersion ? 1 : 0;
  }
  return undefined;
}

/** Opcode modifiers of CONFIG_DEV. */
const configureForm = 0;
const queryForm = 1;
/**
 * Checksum mode in which completions have the sum of every IP packet, and no bit that tells that TCP or UDP is right.
 */
const sumOfEveryPacket = 1;

/** CONFIG_DEV: configures RoCE v2, and queries the checksum modes of received frames. */
export function* configureDevice(device: DeviceState, request: CommandRequest): Steps<undefined> {
  if (request.opcodeModifier !== queryForm) return yield* configureRoce(device, request);
  const { capabilities, ports } = device.parts;
  demand(hasChecksumSums(capabilities), CommandStatus.BAD_OP);
  const report = configDev.encode({
    rxChecksumModePort1: sumOfEveryPacket,
    rxChecksumModePort2: sumOfEveryPacket,
    roceUdpPort: ports[0]?.ethernet?.roce?.udpPort ?? 0,
  });
  yield* writeOutBox(request, report);
  return undefined;
}

/** Sets the UDP port of RoCE v2 on all ports. The other functions of the command are not offered. */
function* configureRoce({ parts }: DeviceState, request: CommandRequest): Steps<undefined> {
  const sides = parts.ports.map(({ ethernet }) => ethernet?.roce);
  demand(
    sides.every((side) => side?.hasVersion2 === true),
    CommandStatus.BAD_OP,
  );
  demand(request.opcodeModifier === configureForm, CommandStatus.BAD_OP);
  const wanted = configDev.decode(yield* readInBox(request, configDev.sizeBytes));
  demand(wanted.updateVxlanPort === 0 && wanted.updateRxPortCheck === 0, CommandStatus.BAD_PARAM);
  if (wanted.updateRocePort === 1) for (const side of sides) side?.setUdpPort(wanted.roceUdpPort);
  return undefined;
}

export function* filterVlans(device: DeviceState, request: CommandRequest): Steps<undefined> {
  const { steering } = sideOf(device, request.inputModifier);
  const { masks } = setVlanFilter.decode(yield* readInBox(request, setVlanFilter.sizeBytes));
  for (let vlanId = 0; vlanId < vlanIdCount; vlanId++)
    steering.vlanFilter[vlanId] = (masks[vlanFilterMaskOf(vlanId)]! >>> (vlanId & 31)) & 1;
  return undefined;
}

const groupsMax = 4096;

export function filterGroups(device: DeviceState, request: CommandRequest): undefined {
  const { steering } = sideOf(device, request.inputModifier);
  const { opcodeModifier } = request;
  if (opcodeModifier === MulticastFilterForm.CONFIGURE) {
    const view = new DataView(new ArrayBuffer(multicastFilterEntry.sizeBytes));
    view.setUint32(0, request.inParamHigh);
    view.setUint32(4, request.inParamLow);
    const { clearsList, mac } = multicastFilterEntry.fields;
    if (clearsList.get(view, 0) === 1) steering.groups.clear();
    demand(steering.groups.size < groupsMax, CommandStatus.EXCEED_LIM);
    steering.groups.add(mac.get(view, 0));
    return undefined;
  }
  demand(
    opcodeModifier === MulticastFilterForm.ENABLE || opcodeModifier === MulticastFilterForm.DISABLE,
    CommandStatus.BAD_OP,
  );
  steering.isGroupFilterOn = opcodeModifier === MulticastFilterForm.ENABLE;
  return undefined;
}

/** The counters as they are, of frames or of flow control; they start from 0 again on request. */
export function* dumpEthernetStatistics(device: DeviceState, request: CommandRequest): Steps<undefined> {
  const view = new DataView(new ArrayBuffer(statisticsRequest.sizeBytes));
  view.setUint32(0, request.inputModifier);
  const { port, clears, flowControl } = statisticsRequest.fields;
  const { statistics } = sideOf(device, port.get(view, 0));
  const isOfPauses = flowControl.get(view, 0) === 1;
  const report = isOfPauses ? statistics.flowControlReport() : statistics.report();
  if (clears.get(view, 0) === 1) {
    if (isOfPauses) statistics.clearFlowControl();
    else statistics.clear();
  }
  yield* writeOutBox(request, report);
  return undefined;
}

/** Bit of the input modifier of QUERY_IF_STAT: the counter starts from 0 again. */
const resetsCounter = 2 ** 31;

/** Reads a flow counter, and clears it on request; a device that reports no counters has no such command. */
export function* queryFlowCounter({ parts }: DeviceState, request: CommandRequest): Steps<undefined> {
  const counters = parts.ports[0]?.ethernet?.flowCounters ?? reject(CommandStatus.BAD_OP);
  const index = request.inputModifier % resetsCounter;
  demand(index < counters.count, CommandStatus.BAD_INDEX);
  const { rxFrames, rxBytes, txFrames, txBytes } = counters.totals(index);
  const report = queryIfStat.encode({
    rxFrames: BigInt(rxFrames),
    rxBytes: BigInt(rxBytes),
    txFrames: BigInt(txFrames),
    txBytes: BigInt(txBytes),
  });
  if (request.inputModifier >>> 31 === 1) counters.clear(index);
  yield* writeOutBox(request, report);
  return undefined;
}

/** Returns the Ethernet side of a port; a port of InfiniBand has none. */
export function sideOf({ parts }: DeviceState, portNumber: number): EthernetSide {
  const port = parts.ports[(portNumber & portMask) - 1] ?? reject(CommandStatus.BAD_PARAM);
  return port.ethernet ?? reject(CommandStatus.BAD_OP);
}
