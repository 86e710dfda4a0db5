/**
 * The subnet management agent of a switch: Get and Set of its attributes. The tables of forwarding and lanes are those of the data plane.
 *
 * Promises: a request that cannot be carried out changes nothing and is answered with the status that the architecture names; one with
 * the wrong M_Key is dropped. Source: IBTA volume 1, 13.4.7 (status), 14.2.4 (M_Key), 14.2.5 (attributes).
 */
import {
  extendedPortInfo,
  guidInfo,
  MadClass,
  MadMethod,
  MadStatus,
  mad,
  multicastForwardingTable,
  NodeType,
  nodeInfo,
  pkeyTable,
  SmpAttribute,
  smp,
  smpDataBytes,
  smpDataOffset,
  switchInfo,
} from '../../../abi/index.ts';
import { type Picoseconds, viewOf } from '../../../base/index.ts';
import type { BlockState } from '../../../sim/index.ts';
import { vendorSpeedOf } from '../../management/index.ts';
import { type ForwardingTables, LINEAR_ENTRIES, MULTICAST_ENTRIES, NO_PORT } from '../forwarding-tables.ts';
import { lifetimePsOf } from '../head-of-queue-limit.ts';
import { FILTER_ENTRIES } from '../partition-filter.ts';
import { arbitrationAttribute, type SwitchLanes, slToVlAttribute } from './lane-tables.ts';
import type { ManagedPort } from './managed-port.ts';

/** Names of the switch. */
export interface SwitchIdentity {
  /** One GUID for the node and all its ports. */
  readonly guid: bigint;
  /** At most 64 bytes of UTF-8. */
  readonly description: string;
}

/** Settings of the data plane that subnet management reads and writes. */
interface SwitchSettings {
  readonly tables: ForwardingTables;
  readonly lanes: SwitchLanes;
  /** At power-on. */
  readonly lifetimeValue: number;
}

/** A request, and where it came from. */
interface Request {
  readonly modifier: number;
  /** The attribute, of the request and of the response. */
  readonly data: Uint8Array;
  readonly arrival: number;
  readonly isSet: boolean;
  /** Whether the sender may not read the M_Key. */
  readonly hidesKey: boolean;
  readonly nowPs: Picoseconds;
}

/** SwitchX-2, as Linux and infiniband-diags know it, and its vendor's OUI. */
const deviceId = 0xc738;
const vendorId = 0x0002c9;
const readOnly = MadStatus.UNSUPPORTED_METHOD_ATTRIBUTE;
const statusOf = (isKnown: boolean): number => (isKnown ? MadStatus.OK : MadStatus.INVALID_FIELD);

export class SwitchManagementAgent {
  readonly #identity: SwitchIdentity;
  /** From port 0. */
  readonly #ports: readonly ManagedPort[];
  readonly #tables: ForwardingTables;
  readonly #lanes: SwitchLanes;
  readonly #info = new Uint8Array(switchInfo.sizeBytes);
  readonly #infoView = viewOf(this.#info);
  /** LifeTimeValue: the longest time for which a packet is in the switch. */
  lifetimePs: Picoseconds;

  constructor(
    identity: SwitchIdentity,
    ports: readonly ManagedPort[],
    { tables, lanes, lifetimeValue }: SwitchSettings,
  ) {
    this.#identity = identity;
    this.#ports = ports;
    this.#tables = tables;
    this.#lanes = lanes;
    this.lifetimePs = lifetimePsOf(lifetimeValue);
    switchInfo.encodeInto(
      {
        lifetimeValue,
        linearFdbCap: LINEAR_ENTRIES,
        multicastFdbCap: MULTICAST_ENTRIES,
        defaultPort: NO_PORT,
        defaultMulticastPrimaryPort: NO_PORT,
        defaultMulticastNotPrimaryPort: NO_PORT,
        partitionEnforcementCap: FILTER_ENTRIES,
        inboundEnforcementCap: 1,
        outboundEnforcementCap: 1,
      },
      this.#info,
    );
  }

  /** A link came up or went down. */
  noteLinkChange(): void {
    switchInfo.fields.portStateChange.set(this.#infoView, 0, 1);
  }

  inspect(): BlockState {
    return { info: [...this.#info], states: this.#ports.map(({ state }) => state) };
  }

  /**
   * Answers a request of 256 bytes.
   * @param arrival port by which it came, from 1
   * @returns undefined if the request has no answer: the wrong M_Key, or no request
   */
  answer(request: Uint8Array, arrival: number, nowPs: Picoseconds): Uint8Array | undefined {
    const view = viewOf(request);
    const method = mad.fields.method.get(view, 0);
    if (mad.fields.baseVersion.get(view, 0) !== 1 || method > 0x7f) return undefined;
    if (method === MadMethod.TRAP_REPRESS || !this.#hasKey(view, method === MadMethod.SET)) return undefined;
    const response = request.slice();
    const responseView = viewOf(response);
    const isDirected = mad.fields.managementClass.get(view, 0) === MadClass.SUBN_DIRECTED_ROUTE;
    const status = this.#dispatch(responseView, arrival, nowPs);
    mad.fields.method.set(responseView, 0, MadMethod.GET_RESP);
    mad.fields.status.set(responseView, 0, status | (isDirected ? MadStatus.DIRECTION : 0));
    return response;
  }

  /** 14.2.4.1: a Set needs the M_Key; a Get does if the protect bits are 2 or 3. */
  #hasKey(view: DataView, isSet: boolean): boolean {
    const [own] = this.#ports;
    if (own!.mkey === 0n || smp.fields.mkey.get(view, 0) === own!.mkey) return true;
    if (!isSet && own!.mkeyProtect < 2) return true;
    own!.countMkeyViolation();
    return false;
  }

  #dispatch(view: DataView, arrival: number, nowPs: Picoseconds): number {
    if (mad.fields.classVersion.get(view, 0) !== 1) return MadStatus.UNSUPPORTED_VERSION;
    const method = mad.fields.method.get(view, 0);
    if (method !== MadMethod.GET && method !== MadMethod.SET) return MadStatus.UNSUPPORTED_METHOD;
    const isSet = method === MadMethod.SET;
    const [own] = this.#ports;
    const isKeyed = own!.mkey === 0n || smp.fields.mkey.get(view, 0) === own!.mkey;
    const data = new Uint8Array(view.buffer, view.byteOffset + smpDataOffset, smpDataBytes);
    const modifier = mad.fields.attributeModifier.get(view, 0);
    if (!isSet) data.fill(0);
    const hidesKey = !isKeyed && own!.mkeyProtect === 1;
    return this.#attribute(mad.fields.attributeId.get(view, 0), {
      modifier,
      data,
      arrival,
      isSet,
      hidesKey,
      nowPs,
    });
  }

  #attribute(attributeId: number, request: Request): number {
    const { modifier, data, isSet, nowPs } = request;
    switch (attributeId) {
      case SmpAttribute.NODE_DESC:
        return isSet ? readOnly : this.#description(data);
      case SmpAttribute.NODE_INFO:
        return isSet ? readOnly : this.#nodeInfo(request);
      case SmpAttribute.SWITCH_INFO:
        return this.#switchInfo(request);
      case SmpAttribute.GUID_INFO:
        return this.#guidInfo(request);
      case SmpAttribute.PORT_INFO:
        return this.#portInfo(request);
      case SmpAttribute.PKEY_TABLE:
        return this.#pkeys(request);
      case SmpAttribute.SL_TO_VL_TABLE:
        return statusOf(slToVlAttribute(this.#lanes, modifier, data, isSet ? nowPs : undefined));
      case SmpAttribute.VL_ARB_TABLE:
        return statusOf(arbitrationAttribute(this.#lanes, modifier, data, isSet));
      case SmpAttribute.LINEAR_FORWARDING_TABLE:
        return this.#linear(request);
      case SmpAttribute.MULTICAST_FORWARDING_TABLE:
        return this.#multicast(request);
      case SmpAttribute.MLX_EXTENDED_PORT_INFO:
        return isSet ? readOnly : this.#extendedPortInfo(request);
      default:
        return MadStatus.UNSUPPORTED_METHOD_ATTRIBUTE;
    }
  }

  #description(data: Uint8Array): number {
    new TextEncoder().encodeInto(this.#identity.description, data);
    return MadStatus.OK;
  }

  #nodeInfo({ data, arrival }: Request): number {
    const { guid } = this.#identity;
    nodeInfo.encodeInto(
      {
        baseVersion: 1,
        classVersion: 1,
        nodeType: NodeType.SWITCH,
        ports: this.#ports.length - 1,
        systemImageGuid: guid,
        nodeGuid: guid,
        portGuid: guid,
        partitionCap: FILTER_ENTRIES,
        deviceId,
        localPort: arrival,
        vendorId,
      },
      data,
    );
    return MadStatus.OK;
  }

  /** A Set of PortStateChange = 1 clears it; the rest is stored where it is no capability. */
  #switchInfo({ data, isSet, nowPs }: Request): number {
    const { fields } = switchInfo;
    if (isSet) {
      const wanted = viewOf(data);
      const top = fields.linearFdbTop.get(wanted, 0);
      if (top >= LINEAR_ENTRIES) return MadStatus.INVALID_FIELD;
      this.#tables.setLinearTop(top, nowPs);
      for (const name of writtenSwitchFields)
        fields[name].set(this.#infoView, 0, fields[name].get(wanted, 0));
      this.lifetimePs = lifetimePsOf(fields.lifetimeValue.get(wanted, 0));
      if (fields.portStateChange.get(wanted, 0) === 1) fields.portStateChange.set(this.#infoView, 0, 0);
    }
    fields.linearFdbTop.set(this.#infoView, 0, this.#tables.linearTop);
    data.set(this.#info);
    return MadStatus.OK;
  }

  /** The one GUID of port 0 cannot be changed. */
  #guidInfo({ modifier, data }: Request): number {
    if (modifier !== 0) return MadStatus.INVALID_FIELD;
    guidInfo.encodeInto({ guids: [this.#identity.guid, ...Array<bigint>(7).fill(0n)] }, data);
    return MadStatus.OK;
  }

  /** Bit 31 of the modifier says that the manager knows extended speeds. */
  #portInfo({ modifier, data, arrival, isSet, hidesKey, nowPs }: Request): number {
    const port = this.#ports[modifier & 0x7fff_ffff];
    if (port === undefined) return MadStatus.INVALID_FIELD;
    const status = isSet ? port.write(viewOf(data), nowPs) : MadStatus.OK;
    port.read(data, arrival, hidesKey);
    return status;
  }

  #pkeys({ modifier, data, isSet, nowPs }: Request): number {
    const port = this.#ports[modifier >>> 16];
    if (port === undefined || (modifier & 0xffff) !== 0) return MadStatus.INVALID_FIELD;
    if (isSet) port.partition.setPkeys(pkeyTable.decode(data).pkeys, nowPs);
    pkeyTable.encodeInto({ pkeys: [...port.partition.pkeys] }, data);
    return MadStatus.OK;
  }

  #linear({ modifier, data, isSet, nowPs }: Request): number {
    if (isSet) return statusOf(this.#tables.setLinearBlock(modifier, data, nowPs));
    const ports = this.#tables.linearBlock(modifier);
    if (ports !== undefined) data.set(ports);
    return statusOf(ports !== undefined);
  }

  #multicast({ modifier, data, isSet, nowPs }: Request): number {
    const [block, position] = [modifier & 0x0fff_ffff, modifier >>> 28];
    if (isSet) {
      const { portMasks } = multicastForwardingTable.decode(data);
      return statusOf(this.#tables.setMulticastBlock(block, position, portMasks, nowPs));
    }
    const portMasks = this.#tables.multicastBlock(block, position);
    if (portMasks !== undefined) multicastForwardingTable.encodeInto({ portMasks }, data);
    return statusOf(portMasks !== undefined);
  }

  #extendedPortInfo({ modifier, data }: Request): number {
    const port = this.#ports[modifier];
    if (port === undefined) return MadStatus.INVALID_FIELD;
    extendedPortInfo.encodeInto({ linkSpeedActive: vendorSpeedOf(port.linkSetting) }, data);
    return MadStatus.OK;
  }
}

const writtenSwitchFields = [
  ...(['defaultPort', 'defaultMulticastPrimaryPort', 'defaultMulticastNotPrimaryPort'] as const),
  ...(['lifetimeValue', 'multicastFdbTop'] as const),
] as const;
