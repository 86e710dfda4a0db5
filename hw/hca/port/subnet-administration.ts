/**
 * The embedded subnet manager's answers to software: queries of subnet administration (SA) to QP1 of the manager's LID,
 * Get(SMInfo) and Set(SMInfo). The manager has a LID that no port has, and every HCA contains it: a MAD to that LID
 * passes the loopback, is turned into its response here, and continues to the QP that sent it.
 *
 *     QP1 ─▶ transmitter ─▶ loopback ─▶ receiver ─▶ answer() ─▶ the same packet from the manager ─▶ QP1
 *
 * It knows the subnet as it was planned: the ports at the ends of the cable, each with its GUID and LID. ClassPortInfo,
 * path, node, port, multicast membership and InformInfo are answered. Groups are not shared with the other HCA's
 * manager: each group's LID follows from its MGID, so that both give the same one.
 *
 * A table goes in segments of 200 bytes (RMPP): the first answers the query, and each acknowledgement the ones that its
 * window lets go. There is no timer: a segment that finds no receive is sent again when an earlier one is acknowledged
 * once more, or the query is. Sources: InfiniBand Architecture volume 1, 13.6.2 (RMPP), 14.2.5.13, 14.4.1, 15.2, 15.4;
 * RFC 4391, 4 (the group of IP over InfiniBand).
 */
import {
  classPortInfo,
  MadClass,
  MadMethod,
  MadStatus,
  McMemberComponent,
  mad,
  madBytes,
  mcMemberRecord,
  NodeComponent,
  nodeRecord,
  PathComponent,
  PortInfoComponent,
  pathRecord,
  portInfo,
  portInfoRecord,
  RmppFlag,
  RmppType,
  SmControl,
  SmpAttribute,
  SmState,
  SubnetAttribute,
  SubnetMethod,
  SubnetStatus,
  smInfo,
  smpDataOffset,
  subnetAdministration,
  subnetDataBytes,
  subnetDataOffset,
  subnetHeaderBytes,
} from '../../../abi/index.ts';
import { viewOf } from '../../../base/index.ts';
import type { BlockState } from '../../../sim/index.ts';
import { isSamePartition, pathRateOf } from '../../management/index.ts';
import { FIRST_MULTICAST_LID, PERMISSIVE_LID } from '../ibta/packets/index.ts';
import type { HcaPort } from './hca-port.ts';
import { nodeInfoOf } from './subnet-management-agent.ts';

/** A port of the subnet. */
export interface SubnetMember {
  readonly lid: number;
  readonly nodeGuid: bigint;
  readonly portGuid: bigint;
  readonly description: string;
}

export interface SubnetAdministrationSetup {
  /** The querying port. */
  readonly port: HcaPort;
  readonly portCount: number;
  /** All that are at the ends of the cable, the own one among them. */
  readonly members: readonly SubnetMember[];
}

/** A table on its way: the MAD that each segment begins with, and all records. */
interface Table {
  readonly head: Uint8Array;
  readonly data: Uint8Array;
  readonly segmentCount: number;
}

/** The answer to a query: records of one length, or the status if there are none. */
type Answer = readonly Uint8Array[] | number;

const classVersion = 2;
/** Selector of a value that is meant exactly. */
const exactly = 2;
/** 4.096 us times 2^18, which opensm reports for every path. */
const packetLifeTime = 18;
/** Defaults of groups whose creator leaves them open; opensm uses them for the group of IP over InfiniBand. */
const groupMtu = 4;
const groupRate = 3;
const groupQueueKey = 0x0b1b;
const defaultPkey = 0xffff;
const groupsMax = 256;
/** Limit of tables that are not completely acknowledged: another table replaces the oldest. */
const tablesMax = 64;

export class SubnetAdministration {
  readonly #port: HcaPort;
  readonly #portCount: number;
  readonly #members: readonly SubnetMember[];
  /** Groups that this port has joined, by MGID. */
  readonly #groups = new Map<string, Uint8Array>();
  /** Tables being sent, by transaction ID. */
  readonly #tables = new Map<bigint, Table>();
  /** The segments of a table that must follow the MAD just answered. */
  #following: { readonly table: Table; segment: number; readonly last: number } | undefined;
  #answeredCount = 0;

  constructor({ port, portCount, members }: SubnetAdministrationSetup) {
    this.#port = port;
    this.#portCount = portCount;
    this.#members = members;
  }

  reset(): void {
    this.#groups.clear();
    this.#tables.clear();
    this.#following = undefined;
    this.#answeredCount = 0;
  }

  /** See Block.inspect. */
  inspect(): BlockState {
    return {
      groups: [...this.#groups.keys()],
      tables: this.#tables.size,
      answered: this.#answeredCount,
    };
  }

  /**
   * Turns a MAD of 256 bytes into its response, in place. Returns false if the MAD needs no response or the manager
   * does not answer it.
   */
  answer(bytes: Uint8Array): boolean {
    this.#following = undefined;
    const view = viewOf(bytes);
    const { method, baseVersion, managementClass } = mad.fields;
    if (bytes.length !== madBytes || baseVersion.get(view, 0) !== 1 || method.get(view, 0) > 0x7f)
      return false;
    const isAnswered =
      managementClass.get(view, 0) === MadClass.SUBN_ADM
        ? this.#answerQuery(bytes, view)
        : this.#answerSmInfo(bytes, view);
    if (isAnswered) this.#answeredCount++;
    return isAnswered;
  }

  /** Whether the response continues in another MAD. */
  get hasNext(): boolean {
    const following = this.#following;
    return following !== undefined && following.segment < following.last;
  }

  /** Turns a response into the MAD that follows it, in place. */
  next(bytes: Uint8Array): void {
    const following = this.#following!;
    putSegment(bytes, following.table, ++following.segment);
  }

  /** Get(SMInfo), and Set(SMInfo) as the master that this manager is from power-on until a reset. */
  #answerSmInfo(bytes: Uint8Array, view: DataView): boolean {
    const { managementClass, method, attributeId, status } = mad.fields;
    const asked = method.get(view, 0);
    const isAsked =
      managementClass.get(view, 0) === MadClass.SUBN_LID_ROUTED &&
      (asked === MadMethod.GET || asked === MadMethod.SET) &&
      attributeId.get(view, 0) === SmpAttribute.SM_INFO;
    if (!isAsked) return false;
    const isLawful = asked === MadMethod.GET || isLawfulForMaster(view);
    const { portGuid } = this.#members[0]!;
    const activityCount = this.#answeredCount;
    const info = { guid: portGuid, smKey: 0n, activityCount, priority: 0, state: SmState.MASTER };
    smInfo.encodeInto(info, bytes, smpDataOffset);
    method.set(view, 0, MadMethod.GET_RESP);
    status.set(view, 0, isLawful ? MadStatus.OK : MadStatus.INVALID_FIELD);
    return true;
  }

  #answerQuery(bytes: Uint8Array, view: DataView): boolean {
    const { rmppFlags, rmppType } = subnetAdministration.fields;
    const isActive = (rmppFlags.get(view, 0) & RmppFlag.ACTIVE) !== 0;
    if (isActive && rmppType.get(view, 0) !== RmppType.DATA) return this.#goOn(bytes, view);
    const method = mad.fields.method.get(view, 0);
    const answer = this.#dispatch(bytes, view, method);
    const isTable = method === SubnetMethod.GET_TABLE;
    const records = typeof answer === 'number' ? [] : answer;
    const status = typeof answer === 'number' ? answer : statusOf(records, isTable);
    mad.fields.method.set(view, 0, method === MadMethod.SET ? MadMethod.GET_RESP : method | 0x80);
    mad.fields.status.set(view, 0, status);
    if (isTable) this.#sendTable(bytes, view, status === MadStatus.OK ? records : []);
    else if (status === MadStatus.OK) bytes.set(records[0]!, subnetDataOffset);
    return true;
  }

  /** The first segment of a table; the others wait for an acknowledgement. */
  #sendTable(bytes: Uint8Array, view: DataView, records: readonly Uint8Array[]): void {
    const distance = offsetOf(records[0]);
    subnetAdministration.fields.attributeOffset.set(view, 0, distance);
    const data = new Uint8Array(records.length * 8 * distance);
    for (const [index, record] of records.entries()) data.set(record, index * 8 * distance);
    const segmentCount = Math.max(1, Math.ceil(data.length / subnetDataBytes));
    const table = { head: bytes.slice(0, subnetDataOffset), data, segmentCount };
    putSegment(bytes, table, 1);
    if (segmentCount === 1) return;
    const [oldest] = this.#tables.keys();
    if (this.#tables.size === tablesMax && oldest !== undefined) this.#tables.delete(oldest);
    this.#tables.set(mad.fields.transactionId.get(view, 0), table);
  }

  /** Handles an acknowledgement, which releases segments up to the end of its window; anything else ends the table. */
  #goOn(bytes: Uint8Array, view: DataView): boolean {
    const { rmppType, segmentNumber, payloadLength } = subnetAdministration.fields;
    const id = mad.fields.transactionId.get(view, 0);
    const table = this.#tables.get(id);
    if (table === undefined) return false;
    const acknowledged = segmentNumber.get(view, 0);
    const last = Math.min(payloadLength.get(view, 0), table.segmentCount);
    const goesOn = rmppType.get(view, 0) === RmppType.ACK && acknowledged < table.segmentCount;
    if (!goesOn || last < acknowledged) {
      this.#tables.delete(id);
      return false;
    }
    if (last === acknowledged) return false;
    this.#following = { table, segment: acknowledged, last };
    this.next(bytes);
    return true;
  }

  #dispatch(bytes: Uint8Array, view: DataView, method: number): Answer {
    if (mad.fields.classVersion.get(view, 0) !== classVersion) return MadStatus.UNSUPPORTED_VERSION;
    const attribute = mad.fields.attributeId.get(view, 0);
    const mask = subnetAdministration.fields.componentMask.get(view, 0);
    const data = bytes.subarray(subnetDataOffset, subnetDataOffset + subnetDataBytes);
    switch (method) {
      case MadMethod.GET:
      case SubnetMethod.GET_TABLE:
        return this.#get(attribute, mask, data, method);
      case MadMethod.SET:
        if (attribute === SubnetAttribute.MC_MEMBER_RECORD) return this.#join(mask, data);
        return attribute === SubnetAttribute.INFORM_INFO
          ? [data.slice()]
          : MadStatus.UNSUPPORTED_METHOD_ATTRIBUTE;
      case SubnetMethod.DELETE:
        return attribute === SubnetAttribute.MC_MEMBER_RECORD
          ? this.#leave(mask, data)
          : MadStatus.UNSUPPORTED_METHOD_ATTRIBUTE;
      default:
        return MadStatus.UNSUPPORTED_METHOD;
    }
  }

  #get(attribute: number, mask: bigint, data: Uint8Array, method: number): Answer {
    switch (attribute) {
      case SubnetAttribute.CLASS_PORT_INFO: {
        if (method !== MadMethod.GET) return MadStatus.UNSUPPORTED_METHOD_ATTRIBUTE;
        const info = { baseVersion: 1, classVersion, capabilityMask: 0, responseTime: packetLifeTime };
        return [classPortInfo.encode(info)];
      }
      case SubnetAttribute.PATH_RECORD:
        return this.#paths(mask, data);
      case SubnetAttribute.NODE_RECORD:
        return this.#nodes(mask, data);
      case SubnetAttribute.PORT_INFO_RECORD:
        return this.#portInfos(mask, data);
      case SubnetAttribute.MC_MEMBER_RECORD:
        return this.#memberships(mask, data);
      default:
        return MadStatus.UNSUPPORTED_METHOD_ATTRIBUTE;
    }
  }

  /** Answers with one path for each pair of ports that the query allows. */
  #paths(mask: bigint, data: Uint8Array): Answer {
    const asked = pathRecord.decode(data.subarray(0, pathRecord.sizeBytes));
    const has = (bit: bigint): boolean => (mask & bit) !== 0n;
    const isEnd = (member: SubnetMember, gid: Uint8Array | undefined, lid: number | undefined): boolean =>
      (gid === undefined || this.#hasGid(member, gid)) && (lid === undefined || lid === this.#lidOf(member));
    const sourceGid = has(PathComponent.SOURCE_GID) ? asked.sourceGid : undefined;
    const destinationGid = has(PathComponent.DESTINATION_GID) ? asked.destinationGid : undefined;
    const sourceLid = has(PathComponent.SOURCE_LID) ? asked.sourceLid : undefined;
    const destinationLid = has(PathComponent.DESTINATION_LID) ? asked.destinationLid : undefined;
    const { pkeys } = this.#port;
    if (has(PathComponent.PKEY) && !pkeys.some((pkey) => isSamePartition(pkey, asked.pkey))) return [];
    const mtu = portInfo.fields.neighborMtu.get(this.#port.view, 0);
    const rate = pathRateOf(this.#port.linkSetting);
    if (has(PathComponent.MTU) && !isAllowed(asked.mtuSelector, asked.mtu, mtu)) return [];
    if (has(PathComponent.RATE) && !isAllowed(asked.rateSelector, asked.rate, rate)) return [];
    const sources = this.#members.filter((member) => isEnd(member, sourceGid, sourceLid));
    const ends = this.#members.filter((member) => isEnd(member, destinationGid, destinationLid));
    return sources.flatMap((from) =>
      ends.map((to) =>
        pathRecord.encode({
          destinationGid: destinationGid ?? this.#gidOf(to),
          sourceGid: sourceGid ?? this.#gidOf(from),
          destinationLid: this.#lidOf(to),
          sourceLid: this.#lidOf(from),
          hopLimit: 0,
          reversible: 1,
          pathCount: 0,
          pkey: has(PathComponent.PKEY) ? asked.pkey : defaultPkey,
          serviceLevel: 0,
          mtuSelector: exactly,
          mtu,
          rateSelector: exactly,
          rate,
          packetLifeTimeSelector: exactly,
          packetLifeTime,
        }),
      ),
    );
  }

  #nodes(mask: bigint, data: Uint8Array): Answer {
    const has = (bit: bigint): boolean => (mask & bit) !== 0n;
    const view = viewOf(data);
    const lid = nodeRecord.fields.lid.get(view, 0);
    const [nodeGuid, portGuid] = [view.getBigUint64(0x10), view.getBigUint64(0x18)];
    return this.#members
      .filter(
        (member) =>
          (!has(NodeComponent.LID) || lid === this.#lidOf(member)) &&
          (!has(NodeComponent.NODE_GUID) || nodeGuid === member.nodeGuid) &&
          (!has(NodeComponent.PORT_GUID) || portGuid === member.portGuid),
      )
      .map((member) => {
        const description = new Uint8Array(64);
        description.set(new TextEncoder().encode(member.description).subarray(0, 64));
        const info = nodeInfoOf(member, this.#portCount, this.#port);
        return nodeRecord.encode({
          lid: this.#lidOf(member),
          nodeInfo: info.subarray(0, 40),
          description,
        });
      });
  }

  /** Answers for the own port only; the other port's agent answers for it. */
  #portInfos(mask: bigint, data: Uint8Array): Answer {
    const { lid, portNumber } = portInfoRecord.fields;
    const view = viewOf(data);
    const isOther =
      ((mask & PortInfoComponent.LID) !== 0n && lid.get(view, 0) !== this.#port.lid) ||
      ((mask & PortInfoComponent.PORT_NUMBER) !== 0n &&
        portNumber.get(view, 0) !== this.#port.setup.portNumber);
    if (isOther) return [];
    const info = { lid: this.#port.lid, portNumber: this.#port.setup.portNumber, portInfo: this.#port.info };
    return [portInfoRecord.encode(info)];
  }

  #memberships(mask: bigint, data: Uint8Array): Answer {
    const { mgid } = mcMemberRecord.decode(data.subarray(0, mcMemberRecord.sizeBytes));
    const key = (mask & McMemberComponent.MGID) === 0n ? undefined : keyOf(mgid);
    return [...this.#groups].filter(([name]) => key === undefined || key === name).map(([, group]) => group);
  }

  /**
   * Joins a group, which exists from its first join on; unspecified fields get opensm's values for groups of IP over
   * InfiniBand.
   */
  #join(mask: bigint, data: Uint8Array): Answer {
    const has = (bit: bigint): boolean => (mask & bit) !== 0n;
    const asked = mcMemberRecord.decode(data.subarray(0, mcMemberRecord.sizeBytes));
    const { MGID, PORT_GID, JOIN_STATE } = McMemberComponent;
    if (!has(MGID) || !has(PORT_GID) || !has(JOIN_STATE)) return SubnetStatus.INSUFFICIENT_COMPONENTS;
    if (asked.mgid[0] !== 0xff) return SubnetStatus.REQUEST_INVALID;
    if (!this.#members.some((member) => this.#hasGid(member, asked.portGid))) return SubnetStatus.INVALID_GID;
    if (asked.joinState === 0) return SubnetStatus.REQUEST_INVALID;
    const key = keyOf(asked.mgid);
    const before = this.#groups.get(key);
    if (before === undefined && this.#groups.size === groupsMax) return SubnetStatus.NO_RESOURCES;
    const group = before ?? newGroup(asked, has);
    const { joinState } = mcMemberRecord.fields;
    const view = viewOf(group);
    joinState.set(view, 0, joinState.get(view, 0) | asked.joinState);
    this.#groups.set(key, group);
    return [group];
  }

  #leave(mask: bigint, data: Uint8Array): Answer {
    const { MGID, JOIN_STATE } = McMemberComponent;
    if ((mask & MGID) === 0n || (mask & JOIN_STATE) === 0n) return SubnetStatus.INSUFFICIENT_COMPONENTS;
    const asked = mcMemberRecord.decode(data.subarray(0, mcMemberRecord.sizeBytes));
    const key = keyOf(asked.mgid);
    const group = this.#groups.get(key);
    if (group === undefined) return SubnetStatus.REQUEST_INVALID;
    const { joinState } = mcMemberRecord.fields;
    const view = viewOf(group);
    const left = joinState.get(view, 0) & ~asked.joinState;
    joinState.set(view, 0, left);
    if (left === 0) this.#groups.delete(key);
    return [group];
  }

  /** The own LID as it is now; that of others as the subnet was planned. */
  #lidOf(member: SubnetMember): number {
    return member.portGuid === this.#port.guids[0] ? this.#port.lid : member.lid;
  }

  get #prefix(): bigint {
    return portInfo.fields.gidPrefix.get(this.#port.view, 0);
  }

  #gidOf({ portGuid }: SubnetMember): Uint8Array {
    const gid = new Uint8Array(16);
    const view = viewOf(gid);
    view.setBigUint64(0, this.#prefix);
    view.setBigUint64(8, portGuid);
    return gid;
  }

  #hasGid({ portGuid }: SubnetMember, gid: Uint8Array): boolean {
    const view = viewOf(gid);
    if (view.getBigUint64(0) !== this.#prefix) return false;
    const guid = view.getBigUint64(8);
    const isOwn = portGuid === this.#port.guids[0];
    return guid === portGuid || (isOwn && guid !== 0n && this.#port.guids.includes(guid));
  }
}

/**
 * Whether a master accepts a Set(SMInfo). It keeps its state at HANDOVER from another master, which then leaves the
 * subnet to it; DISABLE, DISCOVER and STANDBY are for managers in other states, and ACKNOWLEDGE answers a HANDOVER,
 * which this manager never sends (14.4.1).
 */
const isLawfulForMaster = (view: DataView): boolean =>
  mad.fields.attributeModifier.get(view, 0) === SmControl.HANDOVER &&
  smInfo.fields.state.get(view, smpDataOffset) === SmState.MASTER;

/** Returns the status of a query; a query for one record fails unless exactly one record matches. */
function statusOf(records: readonly Uint8Array[], isTable: boolean): number {
  const [first] = records;
  if (first === undefined) return isTable ? MadStatus.OK : SubnetStatus.NO_RECORDS;
  return !isTable && records.length > 1 ? SubnetStatus.TOO_MANY_RECORDS : MadStatus.OK;
}

/** Distance of records in a table, in units of 8 bytes. */
const offsetOf = (first: Uint8Array | undefined): number => Math.ceil((first?.length ?? 0) / 8);

/** Writes a segment of a table: the first gives the length of all segments together, the last its own (13.6.2.1). */
function putSegment(bytes: Uint8Array, { head, data, segmentCount }: Table, segment: number): void {
  const view = viewOf(bytes);
  const { rmppVersion, rmppType, rmppFlags, rmppStatus, segmentNumber, payloadLength } =
    subnetAdministration.fields;
  const from = (segment - 1) * subnetDataBytes;
  const part = data.subarray(from, from + subnetDataBytes);
  bytes.set(head);
  bytes.fill(0, subnetDataOffset);
  bytes.set(part, subnetDataOffset);
  const [isFirst, isLast] = [segment === 1, segment === segmentCount];
  rmppVersion.set(view, 0, 1);
  rmppType.set(view, 0, RmppType.DATA);
  rmppFlags.set(view, 0, RmppFlag.ACTIVE | (isFirst ? RmppFlag.FIRST : 0) | (isLast ? RmppFlag.LAST : 0));
  rmppStatus.set(view, 0, 0);
  segmentNumber.set(view, 0, segment);
  const wholeBytes = segmentCount * subnetHeaderBytes + data.length;
  payloadLength.set(view, 0, isFirst ? wholeBytes : isLast ? subnetHeaderBytes + part.length : 0);
}

const keyOf = (mgid: Uint8Array): string =>
  Array.from(mgid, (byte) => byte.toString(16).padStart(2, '0')).join('');

/** Whether a value satisfies a selector: 0 greater, 1 less, 2 exactly, 3 the largest available. */
function isAllowed(selector: number, wanted: number, value: number): boolean {
  if (selector === 0) return value > wanted;
  if (selector === 1) return value < wanted;
  return selector !== exactly || value === wanted;
}

type McMember = ReturnType<typeof mcMemberRecord.decode>;

function newGroup(asked: McMember, has: (bit: bigint) => boolean): Uint8Array {
  const bits = McMemberComponent;
  return mcMemberRecord.encode({
    ...asked,
    queueKey: has(bits.QUEUE_KEY) ? asked.queueKey : groupQueueKey,
    mlid: multicastLidOf(asked.mgid),
    mtuSelector: exactly,
    mtu: has(bits.MTU) ? asked.mtu : groupMtu,
    trafficClass: has(bits.TRAFFIC_CLASS) ? asked.trafficClass : 0,
    pkey: has(bits.PKEY) ? asked.pkey : defaultPkey,
    rateSelector: exactly,
    rate: has(bits.RATE) ? asked.rate : groupRate,
    packetLifeTimeSelector: exactly,
    packetLifeTime: has(bits.PACKET_LIFE_TIME) ? asked.packetLifeTime : packetLifeTime,
    serviceLevel: has(bits.SERVICE_LEVEL) ? asked.serviceLevel : 0,
    flowLabel: has(bits.FLOW_LABEL) ? asked.flowLabel : 0,
    hopLimit: has(bits.HOP_LIMIT) ? asked.hopLimit : 0,
    scope: asked.mgid[1]! & 0xf,
    joinState: 0,
  });
}

/**
 * Returns the LID of a group: FNV-1a of its MGID. Two groups may share a LID, as the standard allows: ports compare
 * MGIDs.
 */
function multicastLidOf(mgid: Uint8Array): number {
  let hash = 0x811c9dc5;
  for (const byte of mgid) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
  return FIRST_MULTICAST_LID + (hash % (PERMISSIVE_LID - FIRST_MULTICAST_LID));
}
