/**
 * The HCA's own management agents, reached by MAD_IFC: subnet management here (get and set of the port's attributes), and
 * performance management in hw/management.
 *
 * Promises: a request that cannot be carried out changes nothing and is answered with the MAD status that the architecture
 * names; a request that is no MAD at all is refused as a command. Directed routes end here with hop count 0: the kernel
 * adds the direction bit itself. Sources: interface sheet 3.14, 7.6, 7.7; InfiniBand Architecture volume 1, 13.4.7, 14.2.5.
 */

import {
  extendedPortInfo,
  guidInfo,
  MadClass,
  MadMethod,
  MadStatus,
  mad,
  madBytes,
  NodeType,
  nodeInfo,
  PortInfoChange,
  PortManagementChange,
  PortState,
  pciIdentity,
  pkeyTable,
  portInfo,
  SmpAttribute,
  smp,
  smpDataBytes,
  smpDataOffset,
} from '../../../abi/index.ts';
import { type Cycles, viewOf } from '../../../base/index.ts';
import { PerformanceAgent, vendorSpeedOf } from '../../management/index.ts';
import type { HcaPort } from './hca-port.ts';

const DESCRIPTION_BYTES = 64;

/** Names of the node as a whole. */
export class NodeIdentity {
  readonly nodeGuid: bigint;
  /** SET_NODE replaces it, until the next reset. */
  readonly description = new Uint8Array(DESCRIPTION_BYTES);
  readonly #initialDescription: Uint8Array;

  constructor(nodeGuid: bigint, description: string) {
    this.nodeGuid = nodeGuid;
    this.#initialDescription = new TextEncoder().encode(description).subarray(0, DESCRIPTION_BYTES);
    this.reset();
  }

  reset(): void {
    this.description.fill(0);
    this.description.set(this.#initialDescription);
  }
}

/** Parameters of MAD_IFC that determine how a request is handled. */
export interface MadHandling {
  /** Port the request would have arrived on, from 1. */
  readonly portNumber: number;
  readonly checksMkey: boolean;
  readonly cycle: Cycles;
}

/** The request is no MAD that an agent could answer. */
export const MALFORMED = 'malformed';
/** The request wants no answer. */
export const SILENT = 'silent';

const fields = portInfo.fields;
const guidsPerBlock = 8;
const pkeysPerBlock = 32;

export class ManagementAgents {
  readonly #node: NodeIdentity;
  readonly #ports: readonly HcaPort[];
  readonly #performance: PerformanceAgent;

  constructor(node: NodeIdentity, ports: readonly HcaPort[]) {
    this.#node = node;
    this.#ports = ports;
    this.#performance = new PerformanceAgent(ports);
  }

  /** The device was reset: counters begin at zero. The ports reset their own attributes. */
  reset(): void {
    this.#performance.reset();
  }

  /** Handles a 256-byte request. Returns the response, or MALFORMED or SILENT if the agent sends none. */
  handle(request: Uint8Array, handling: MadHandling): Uint8Array | typeof MALFORMED | typeof SILENT {
    const view = viewOf(request);
    const method = mad.fields.method.get(view, 0);
    if (mad.fields.baseVersion.get(view, 0) !== 1 || method > 0x7f) return MALFORMED;
    if (method === MadMethod.TRAP_REPRESS) return SILENT;
    const response = request.slice(0, madBytes);
    const status = this.#dispatch(view, viewOf(response), handling);
    if (status === SILENT) return SILENT;
    mad.fields.method.set(viewOf(response), 0, MadMethod.GET_RESP);
    mad.fields.status.set(viewOf(response), 0, status);
    return response;
  }

  #dispatch(request: DataView, response: DataView, handling: MadHandling): number | typeof SILENT {
    if (mad.fields.classVersion.get(request, 0) !== 1) return MadStatus.UNSUPPORTED_VERSION;
    switch (mad.fields.managementClass.get(request, 0)) {
      case MadClass.SUBN_LID_ROUTED:
      case MadClass.SUBN_DIRECTED_ROUTE:
        return this.#manageSubnet(request, response, handling);
      case MadClass.PERF_MGMT:
        return this.#performance.answer(request, response);
      default:
        return MadStatus.UNSUPPORTED_VERSION;
    }
  }

  #manageSubnet(request: DataView, response: DataView, handling: MadHandling): number | typeof SILENT {
    const port = this.#ports[handling.portNumber - 1]!;
    const mkey = fields.mkey.get(port.view, 0);
    // IBA 14.2.4: a request with the wrong M_Key is dropped without an answer.
    if (handling.checksMkey && mkey !== 0n && smp.fields.mkey.get(request, 0) !== mkey) return SILENT;
    switch (mad.fields.method.get(request, 0)) {
      case MadMethod.GET:
        return this.#get(request, response, port);
      case MadMethod.SET:
        return this.#set(request, response, port, handling.cycle);
      default:
        return MadStatus.UNSUPPORTED_METHOD;
    }
  }

  #get(request: DataView, response: DataView, port: HcaPort): number {
    const modifier = mad.fields.attributeModifier.get(request, 0);
    const data = dataOf(response);
    data.fill(0);
    switch (mad.fields.attributeId.get(request, 0)) {
      case SmpAttribute.NODE_DESC:
        data.set(this.#node.description);
        return MadStatus.OK;
      case SmpAttribute.NODE_INFO:
        data.set(
          nodeInfoOf({ nodeGuid: this.#node.nodeGuid, portGuid: port.guids[0]! }, this.#ports.length, port),
        );
        return MadStatus.OK;
      case SmpAttribute.PORT_INFO: {
        const subject = this.#portOf(modifier, port);
        if (subject === undefined) return MadStatus.INVALID_FIELD;
        data.set(subject.info);
        return MadStatus.OK;
      }
      case SmpAttribute.GUID_INFO:
        return getGuids(port, modifier, data);
      case SmpAttribute.PKEY_TABLE:
        return getPkeys(port, modifier, data);
      case SmpAttribute.SL_TO_VL_TABLE:
        data.set(port.slToVl);
        return MadStatus.OK;
      case SmpAttribute.VL_ARB_TABLE:
        return getVlArbitration(port, modifier, data);
      case SmpAttribute.MLX_EXTENDED_PORT_INFO: {
        const subject = this.#portOf(modifier, port);
        if (subject === undefined) return MadStatus.INVALID_FIELD;
        extendedPortInfo.encodeInto({ linkSpeedActive: vendorSpeedOf(subject.linkSetting) }, data);
        return MadStatus.OK;
      }
      default:
        return MadStatus.UNSUPPORTED_METHOD_ATTRIBUTE;
    }
  }

  #set(request: DataView, response: DataView, port: HcaPort, cycle: Cycles): number {
    const modifier = mad.fields.attributeModifier.get(request, 0);
    const data = dataOf(response);
    switch (mad.fields.attributeId.get(request, 0)) {
      case SmpAttribute.PORT_INFO: {
        const subject = this.#portOf(modifier, port);
        if (subject === undefined) return MadStatus.INVALID_FIELD;
        const status = setPortInfo(subject, viewOf(data), cycle);
        data.set(subject.info);
        return status;
      }
      case SmpAttribute.GUID_INFO:
        return setGuids(port, modifier, data, cycle);
      case SmpAttribute.PKEY_TABLE:
        return setPkeys(port, modifier, data, cycle);
      case SmpAttribute.SL_TO_VL_TABLE:
        port.slToVl.set(data.subarray(0, port.slToVl.length));
        return MadStatus.OK;
      case SmpAttribute.VL_ARB_TABLE:
        return setVlArbitration(port, modifier, data);
      default:
        return MadStatus.UNSUPPORTED_METHOD_ATTRIBUTE;
    }
  }

  /** Returns the port that an attribute modifier names; 0 is the port at which the request arrived. */
  #portOf(modifier: number, arrival: HcaPort): HcaPort | undefined {
    return modifier === 0 ? arrival : this.#ports[modifier - 1];
  }
}

/** NodeInfo of a node whose ports are as `port`: IBA 14.2.5.3. */
export const nodeInfoOf = (
  { nodeGuid, portGuid }: { readonly nodeGuid: bigint; readonly portGuid: bigint },
  ports: number,
  port: HcaPort,
): Uint8Array =>
  nodeInfo.encode({
    baseVersion: 1,
    classVersion: 1,
    nodeType: NodeType.CHANNEL_ADAPTER,
    ports,
    systemImageGuid: nodeGuid,
    nodeGuid,
    portGuid,
    partitionCap: port.pkeys.length,
    deviceId: pciIdentity.deviceId,
    revision: pciIdentity.revisionId,
    localPort: port.setup.portNumber,
    vendorId: 0x0002c9, // the vendor's OUI
  });

const dataOf = (response: DataView): Uint8Array =>
  new Uint8Array(response.buffer, response.byteOffset + smpDataOffset, smpDataBytes);

/** Executes Set(PortInfo): addresses, limits and the state that a subnet manager requests. IBA 14.2.5.6. */
function setPortInfo(port: HcaPort, wanted: DataView, cycle: Cycles): number {
  const { view } = port;
  const lid = fields.lid.get(wanted, 0);
  const state = fields.portState.get(wanted, 0);
  const mtu = fields.neighborMtu.get(wanted, 0);
  const needsAddress = state === PortState.ARMED || state === PortState.ACTIVE;
  if (lid > 0xbfff || (needsAddress && lid === 0)) return MadStatus.INVALID_FIELD;
  if (mtu > fields.mtuCap.get(view, 0)) return MadStatus.INVALID_FIELD;
  if (!port.canRequestState(state)) return MadStatus.INVALID_FIELD;
  const changed = changesOf(view, wanted);
  for (const name of ['mkey', 'gidPrefix'] as const) fields[name].set(view, 0, fields[name].get(wanted, 0));
  for (const name of writableFields) fields[name].set(view, 0, fields[name].get(wanted, 0));
  if (mtu !== 0) fields.neighborMtu.set(view, 0, mtu);
  for (const name of zeroKeeps) {
    const value = fields[name].get(wanted, 0);
    if (value !== 0) fields[name].set(view, 0, value);
  }
  for (const [name, supported, all] of enabledFields) {
    const value = fields[name].get(wanted, 0);
    if (value !== 0) fields[name].set(view, 0, value === all ? fields[supported].get(view, 0) : value);
  }
  port.addressChanged();
  port.reportInfoChange(changed, cycle);
  port.requestState(state, cycle);
  return MadStatus.OK;
}

/** Numbers a subnet manager replaces. */
const writableFields = [
  'lid',
  'masterSmLid',
  'mkeyLeasePeriod',
  'mkeyProtect',
  'lmc',
  'masterSmSl',
  'vlHighLimit',
  'subnetTimeout',
  'mkeyViolations',
  'pkeyViolations',
  'qkeyViolations',
] as const;
/** Numbers in which 0 means no change. */
const zeroKeeps = ['operationalVls', 'linkDownDefault'] as const;
/** Fields of enabled values, with another value for everything that the port supports. */
const enabledFields = [
  ['linkWidthEnabled', 'linkWidthSupported', 255],
  ['linkSpeedEnabled', 'linkSpeedSupported', 15],
  ['linkSpeedExtendedEnabled', 'linkSpeedExtendedSupported', 31],
] as const;

function changesOf(view: DataView, wanted: DataView): number {
  const differs = (name: 'lid' | 'masterSmLid' | 'masterSmSl'): boolean =>
    fields[name].get(view, 0) !== fields[name].get(wanted, 0);
  return (
    (differs('lid') ? PortInfoChange.LID : 0) |
    (differs('masterSmLid') ? PortInfoChange.SM_LID : 0) |
    (differs('masterSmSl') ? PortInfoChange.SM_SL : 0) |
    (fields.gidPrefix.get(view, 0) !== fields.gidPrefix.get(wanted, 0) ? PortInfoChange.GID_PREFIX : 0) |
    (fields.clientReregister.get(wanted, 0) === 1 ? PortInfoChange.CLIENT_REREGISTER : 0)
  );
}

function getGuids(port: HcaPort, block: number, data: Uint8Array): number {
  const first = block * guidsPerBlock;
  if (first >= port.guids.length) return MadStatus.INVALID_FIELD;
  guidInfo.encodeInto({ guids: [...port.guids.subarray(first, first + guidsPerBlock)] }, data);
  return MadStatus.OK;
}

/** Entry 0 is the port's own GUID and cannot be changed. */
function setGuids(port: HcaPort, block: number, data: Uint8Array, cycle: Cycles): number {
  const first = block * guidsPerBlock;
  if (first >= port.guids.length) return MadStatus.INVALID_FIELD;
  const wanted = guidInfo.decode(data).guids;
  let changed = 0;
  wanted.forEach((guid, index) => {
    const entry = first + index;
    if (entry === 0 || entry >= port.guids.length || port.guids[entry] === guid) return;
    port.guids[entry] = guid;
    changed |= 1 << index;
  });
  port.addressChanged();
  if (changed !== 0) port.reportTableChange(PortManagementChange.GUID_INFO, block, changed, cycle);
  return getGuids(port, block, data);
}

function getPkeys(port: HcaPort, modifier: number, data: Uint8Array): number {
  const first = (modifier & 0xffff) * pkeysPerBlock;
  if (first >= port.pkeys.length) return MadStatus.INVALID_FIELD;
  pkeyTable.encodeInto({ pkeys: [...port.pkeys.subarray(first, first + pkeysPerBlock)] }, data);
  return MadStatus.OK;
}

function setPkeys(port: HcaPort, modifier: number, data: Uint8Array, cycle: Cycles): number {
  const block = modifier & 0xffff;
  const first = block * pkeysPerBlock;
  if (first >= port.pkeys.length) return MadStatus.INVALID_FIELD;
  let changed = 0;
  pkeyTable.decode(data).pkeys.forEach((pkey, index) => {
    const entry = first + index;
    if (entry >= port.pkeys.length || port.pkeys[entry] === pkey) return;
    port.pkeys[entry] = pkey;
    changed = (changed | (1 << index)) >>> 0;
  });
  if (changed !== 0) port.reportTableChange(PortManagementChange.PKEY_TABLE, block, changed, cycle);
  return MadStatus.OK;
}

/**
 * The part of a port's VL arbitration tables that an attribute modifier names: blocks 1 and 2 are the two halves of the
 * low-priority table, 3 and 4 those of the high-priority one. IBA 14.2.5.9.
 */
function vlArbitrationBlock(port: HcaPort, modifier: number): Uint8Array | undefined {
  const block = (modifier >>> 16) - 1;
  if (block < 0 || block > 3) return undefined;
  const table = block < 2 ? port.vlArbitrationLow : port.vlArbitrationHigh;
  return table.subarray((block % 2) * smpDataBytes, ((block % 2) + 1) * smpDataBytes);
}

function getVlArbitration(port: HcaPort, modifier: number, data: Uint8Array): number {
  const block = vlArbitrationBlock(port, modifier);
  if (block === undefined) return MadStatus.INVALID_FIELD;
  data.set(block);
  return MadStatus.OK;
}

/** Entries beyond the capacity in PortInfo are not kept, and read as zero: IBA 14.2.5.9. */
function setVlArbitration(port: HcaPort, modifier: number, data: Uint8Array): number {
  const block = vlArbitrationBlock(port, modifier);
  if (block === undefined) return MadStatus.INVALID_FIELD;
  block.set(data.subarray(0, block.length));
  data.fill(0);
  data.set(block);
  return MadStatus.OK;
}
