/**
 * Management datagrams in words, as a line of a conversation has them: class, method, attribute and its main fields.
 * Source: IBTA vol 1, 13.4 (header, methods, status), 14.2 (subnet management), 15.2 (subnet administration), 16.1 (performance).
 */
import {
  classPortInfo,
  generalServicesQkey,
  generalServicesQpn,
  guidInfo,
  MadClass,
  MadStatus,
  mad,
  madBytes,
  mcMemberRecord,
  nodeDescription,
  nodeInfo,
  nodeRecord,
  PortPhysicalState,
  PortState,
  pathRecord,
  performanceDataOffset,
  pkeyTable,
  portCounters,
  portCountersExtended,
  portInfo,
  portInfoRecord,
  RmppFlag,
  RmppType,
  smInfo,
  smp,
  smpDataOffset,
  subnetAdministration,
} from '../../abi/index.ts';
import { viewOf } from '../../base/index.ts';
import type { WirePacket } from '../../wire/index.ts';
import { hex, ipv6Text } from './address-text.ts';
import { cmWords } from './cm-words.ts';

const methodNames: Readonly<Record<number, string>> = {
  1: 'Get',
  2: 'Set',
  3: 'Send',
  5: 'Trap',
  6: 'Report',
  7: 'TrapRepress',
  18: 'GetTable',
  19: 'GetTraceTable',
  20: 'GetMulti',
  21: 'Delete',
  129: 'GetResp',
  134: 'ReportResp',
  146: 'GetTableResp',
  148: 'GetMultiResp',
  149: 'DeleteResp',
};
const RESPONSE = 0x80;
const METHOD_GET = 0x01;

const subnetManagementNames: Readonly<Record<number, string>> = {
  1: 'ClassPortInfo',
  2: 'Notice',
  16: 'NodeDescription',
  17: 'NodeInfo',
  18: 'SwitchInfo',
  20: 'GUIDInfo',
  21: 'PortInfo',
  22: 'P_KeyTable',
  23: 'SLtoVLMappingTable',
  24: 'VLArbitrationTable',
  25: 'LinearForwardingTable',
  26: 'RandomForwardingTable',
  27: 'MulticastForwardingTable',
  28: 'LinkSpeedWidthPairsTable',
  29: 'VendorSpecificMadsTable',
  32: 'SMInfo',
  48: 'VendorDiag',
  49: 'LedInfo',
};
const subnetAdministrationNames: Readonly<Record<number, string>> = {
  1: 'ClassPortInfo',
  2: 'Notice',
  3: 'InformInfo',
  17: 'NodeRecord',
  18: 'PortInfoRecord',
  19: 'SLtoVLMappingTableRecord',
  20: 'SwitchInfoRecord',
  21: 'LinearForwardingTableRecord',
  22: 'RandomForwardingTableRecord',
  23: 'MulticastForwardingTableRecord',
  24: 'SMInfoRecord',
  32: 'LinkRecord',
  48: 'GuidInfoRecord',
  49: 'ServiceRecord',
  51: 'P_KeyTableRecord',
  53: 'PathRecord',
  54: 'VLArbitrationTableRecord',
  56: 'MCMemberRecord',
  57: 'TraceRecord',
  58: 'MultiPathRecord',
  59: 'ServiceAssociationRecord',
  243: 'InformInfoRecord',
};
const performanceNames: Readonly<Record<number, string>> = {
  1: 'ClassPortInfo',
  16: 'PortSamplesControl',
  17: 'PortSamplesResult',
  18: 'PortCounters',
  21: 'PortRcvErrorDetails',
  22: 'PortXmitDiscardDetails',
  23: 'PortOpRcvCounters',
  24: 'PortFlowCtlCounters',
  25: 'PortVLOpPackets',
  26: 'PortVLOpData',
  27: 'PortVLXmitFlowCtlUpdateErrors',
  28: 'PortVLXmitWaitCounters',
  29: 'PortCountersExtended',
  30: 'PortSamplesResultExtended',
};

/** A management class: prefix of its methods, and its attributes. */
interface ClassWords {
  readonly prefix: string;
  readonly attributes: Readonly<Record<number, string>>;
}

const subnetClass: ClassWords = { prefix: 'Subn', attributes: subnetManagementNames };
const classes: Readonly<Record<number, ClassWords>> = {
  [MadClass.SUBN_LID_ROUTED]: subnetClass,
  [MadClass.SUBN_DIRECTED_ROUTE]: subnetClass,
  [MadClass.SUBN_ADM]: { prefix: 'SubnAdm', attributes: subnetAdministrationNames },
  [MadClass.PERF_MGMT]: { prefix: 'Perf', attributes: performanceNames },
  5: { prefix: 'BM', attributes: {} },
  6: { prefix: 'DevMgt', attributes: {} },
  [MadClass.COMMUNICATION]: { prefix: 'ComMgt', attributes: {} },
  8: { prefix: 'Snmp', attributes: {} },
  [MadClass.CONG_MGMT]: { prefix: 'CongMgt', attributes: {} },
};

const statusNames: Readonly<Record<number, string>> = {
  [MadStatus.BUSY]: 'busy',
  [MadStatus.UNSUPPORTED_VERSION]: 'version not supported',
  [MadStatus.UNSUPPORTED_METHOD]: 'method not supported',
  [MadStatus.UNSUPPORTED_METHOD_ATTRIBUTE]: 'method and attribute not supported',
  [MadStatus.INVALID_FIELD]: 'invalid field',
};

const COMMON_HEADER_BYTES = 24;

/** Words for the MAD in a packet to QP 0, to QP 1 or with the Q_Key of either; undefined for any other packet. */
export function madWords({ bth, headers, payload, payloadBytes }: WirePacket): string | undefined {
  const { DETH: deth } = headers;
  const isManagement = bth.destinationQp <= generalServicesQpn || deth?.queueKey === generalServicesQkey;
  if (deth === undefined || !isManagement || payloadBytes !== madBytes) return undefined;
  if (payload.length < COMMON_HEADER_BYTES) return 'MAD, cut';
  const isWhole = payload.length === madBytes;
  const bytes = new Uint8Array(madBytes);
  bytes.set(payload);
  const header = mad.decode(bytes);
  const attributeId = viewOf(bytes).getUint16(mad.fields.attributeId.wordOffset);
  if (header.managementClass === MadClass.COMMUNICATION && isWhole) return cmWords(header.data, attributeId);
  const method = methodNames[header.method] ?? `Method ${hex(header.method)} `;
  const { prefix, attributes } = classes[header.managementClass] ?? {
    prefix: `class ${hex(header.managementClass)} `,
    attributes: {},
  };
  const name = attributes[attributeId] ?? hex(attributeId);
  const parts = [`${prefix}${method}(${name})`];
  if (header.attributeModifier !== 0) parts.push(`modifier ${hex(header.attributeModifier)}`);
  if (header.managementClass === MadClass.SUBN_DIRECTED_ROUTE) parts.push(routeWords(bytes));
  parts.push(...statusWords(header.status & ~MadStatus.DIRECTION));
  const hasData = (header.method & RESPONSE) !== 0 || header.method !== METHOD_GET;
  if (isWhole) parts.push(...dataWords(header.managementClass, name, bytes, hasData));
  return parts.filter((part) => part !== '').join(', ');
}

function statusWords(status: number): string[] {
  if (status === MadStatus.OK) return [];
  const name = statusNames[status & 0xff];
  return [`status ${hex(status)}${name === undefined ? '' : ` ${name}`}`];
}

/** The output ports of a directed route. */
function routeWords(bytes: Uint8Array): string {
  const { hopPointer, hopCount, initialPath } = smp.decode(bytes);
  const ports = initialPath.subarray(1, 1 + Math.min(hopCount, initialPath.length - 1)).join(',');
  return `hop ${hopPointer} of ${hopCount}${ports === '' ? '' : ` by ports ${ports}`}`;
}

/** @param hasData false for a Get, whose attribute is empty */
function dataWords(managementClass: number, name: string, bytes: Uint8Array, hasData: boolean): string[] {
  if (managementClass === MadClass.SUBN_ADM) return administrationWords(name, bytes);
  if (managementClass === MadClass.PERF_MGMT)
    return performanceWords(name, bytes.subarray(performanceDataOffset), hasData);
  const isSubnet =
    managementClass === MadClass.SUBN_LID_ROUTED || managementClass === MadClass.SUBN_DIRECTED_ROUTE;
  return isSubnet && hasData ? subnetWords(name, bytes.subarray(smpDataOffset)) : [];
}

function subnetWords(name: string, data: Uint8Array): string[] {
  switch (name) {
    case 'NodeDescription':
      return [`"${textOf(nodeDescription.decode(data).text)}"`];
    case 'NodeInfo':
      return nodeInfoWords(data);
    case 'PortInfo':
      return portInfoWords(data);
    case 'SMInfo': {
      const { guid, priority, state, activityCount } = smInfo.decode(data);
      const stateName = ['not active', 'discovering', 'standby', 'master'][state] ?? String(state);
      return [`GUID ${hex(guid)}`, `priority ${priority}`, stateName, `activity ${activityCount}`];
    }
    case 'GUIDInfo':
      return [`GUIDs ${listOf(guidInfo.decode(data).guids)}`];
    case 'P_KeyTable':
      return [`P_Keys ${listOf(pkeyTable.decode(data).pkeys)}`];
    default:
      return [];
  }
}

function nodeInfoWords(data: Uint8Array): string[] {
  const { nodeType, ports, nodeGuid, portGuid, localPort, deviceId } = nodeInfo.decode(data);
  const type = ['', 'channel adapter', 'switch', 'router'][nodeType] ?? `node type ${nodeType}`;
  return [
    `${type} of ${ports} ports`,
    `node GUID ${hex(nodeGuid)}`,
    `port GUID ${hex(portGuid)}`,
    `port ${localPort}`,
    `device ${hex(deviceId)}`,
  ];
}

function portInfoWords(data: Uint8Array): string[] {
  const { lid, masterSmLid, gidPrefix, capabilityMask } = portInfo.decode(data);
  const { portState, portPhysicalState, neighborMtu, lmc } = portInfo.fields;
  const view = viewOf(data);
  const state = nameIn(PortState, portState.get(view, 0));
  const physical = nameIn(PortPhysicalState, portPhysicalState.get(view, 0));
  return [
    `LID ${lid}`,
    `LMC ${lmc.get(view, 0)}`,
    `SM LID ${masterSmLid}`,
    `prefix ${hex(gidPrefix)}`,
    `state ${state}`,
    `physical state ${physical}`,
    `MTU ${mtuOf(neighborMtu.get(view, 0))}`,
    `capabilities ${hex(capabilityMask)}`,
  ];
}

/** Smallest MTU of the codes 1 to 5; other codes are shown as they are. */
const MTU_CODE_UNIT = 128;
const mtuOf = (code: number): string =>
  code >= 1 && code <= 5 ? String(MTU_CODE_UNIT << code) : `code ${code}`;

function nameIn(names: Readonly<Record<string, number>>, value: number): string {
  const name = Object.entries(names).find(([, number]) => number === value)?.[0];
  return name?.toLowerCase().replace('_', ' ') ?? String(value);
}

function performanceWords(name: string, data: Uint8Array, hasData: boolean): string[] {
  if (name === 'PortCounters') {
    const { portSelect, counterSelect, counterSelect2: _, ...counters } = portCounters.decode(data);
    return countersOf(portSelect, counters, hasData);
  }
  if (name === 'PortCountersExtended') {
    const { portSelect, counterSelect, counterSelect2: _, ...counters } = portCountersExtended.decode(data);
    return countersOf(portSelect, counters, hasData);
  }
  if (name !== 'ClassPortInfo' || !hasData) return [];
  const { baseVersion, classVersion, capabilityMask } = classPortInfo.decode(data);
  return [`versions ${baseVersion} and ${classVersion}`, `capabilities ${hex(capabilityMask)}`];
}

/** The nonzero counters. */
function countersOf(
  port: number,
  counters: Readonly<Record<string, number | bigint>>,
  hasData: boolean,
): string[] {
  const counted = Object.entries(counters).filter(([, value]) => Number(value) !== 0);
  if (!hasData) return [`port ${port}`];
  const words = counted.map(([name, value]) => `${name[0]!.toUpperCase()}${name.slice(1)} ${value}`);
  return [`port ${port}`, words.length === 0 ? 'all 0' : words.join(', ')];
}

function administrationWords(name: string, bytes: Uint8Array): string[] {
  const { rmppType, rmppFlags, segmentNumber, componentMask, data } = subnetAdministration.decode(bytes);
  const parts: string[] = [];
  if ((rmppFlags & RmppFlag.ACTIVE) !== 0) {
    parts.push(`RMPP ${nameIn(RmppType, rmppType)} ${segmentNumber}`);
    const isFirst = rmppType === RmppType.DATA && (rmppFlags & RmppFlag.FIRST) !== 0;
    if (!isFirst) return parts;
  }
  if (componentMask !== 0n) parts.push(`components ${hex(componentMask)}`);
  return [...parts, ...recordWords(name, data)];
}

function recordWords(name: string, data: Uint8Array): string[] {
  switch (name) {
    case 'PathRecord': {
      const path = pathRecord.decode(data.subarray(0, pathRecord.sizeBytes));
      return [
        `from ${ipv6Text(path.sourceGid)} LID ${path.sourceLid}`,
        `to ${ipv6Text(path.destinationGid)} LID ${path.destinationLid}`,
        `P_Key ${hex(path.pkey)}`,
        `SL ${path.serviceLevel}`,
        `MTU ${mtuOf(path.mtu)}`,
        `rate code ${path.rate}`,
      ];
    }
    case 'MCMemberRecord': {
      const group = mcMemberRecord.decode(data.subarray(0, mcMemberRecord.sizeBytes));
      return [
        `group ${ipv6Text(group.mgid)} LID ${hex(group.mlid)}`,
        `port ${ipv6Text(group.portGid)}`,
        `Q_Key ${hex(group.queueKey)}`,
        `P_Key ${hex(group.pkey)}`,
        `join state ${group.joinState}`,
      ];
    }
    case 'NodeRecord': {
      const { lid, nodeInfo: info, description } = nodeRecord.decode(data.subarray(0, nodeRecord.sizeBytes));
      const whole = new Uint8Array(nodeInfo.sizeBytes);
      whole.set(info);
      return [`LID ${lid}`, ...nodeInfoWords(whole), `"${textOf(description)}"`];
    }
    case 'PortInfoRecord': {
      const {
        lid,
        portNumber,
        portInfo: info,
      } = portInfoRecord.decode(data.subarray(0, portInfoRecord.sizeBytes));
      return [`LID ${lid} port ${portNumber}`, ...portInfoWords(info)];
    }
    default:
      return [];
  }
}

/** Text up to the first zero byte, without characters that control a terminal. */
function textOf(bytes: Uint8Array): string {
  const end = bytes.indexOf(0);
  const text = new TextDecoder().decode(end === -1 ? bytes : bytes.subarray(0, end));
  return text.replace(/[^\x20-\x7e]/g, '?');
}

/** Entries of a table up to the last nonzero one. */
function listOf(entries: ArrayLike<number | bigint>): string {
  const all = Array.from(entries);
  const last = all.findLastIndex((entry) => Number(entry) !== 0);
  return last === -1
    ? 'none'
    : all
        .slice(0, last + 1)
        .map(hex)
        .join(' ');
}
