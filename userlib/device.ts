/**
 * Devices: the list, opening and closing, and the query verbs.
 *
 *     const [device] = getDeviceList(platform);
 *     const context = await openDevice(device!);
 */
import { cqRecord, receiveRecord } from '../abi/index.ts';
import {
  type DeviceAttr,
  type GidEntry,
  NodeTypeVerb,
  type PortAttr,
  TransportVerb,
} from '../driver/index.ts';
import { checkArguments, uint8Max, uint16Max } from './numbers.ts';
import { type IbvContext, type IbvDevice, QpTable } from './objects.ts';
import type { VerbsPlatform } from './platform.ts';
import { RecordPool } from './queue-memory.ts';
import { verb } from './verbs-error.ts';

/** The devices of this host, except those that are being restarted or were removed (ibv_get_device_list). */
export function getDeviceList(platform: VerbsPlatform): IbvDevice[] {
  const there = platform.devices.filter(({ isProbed }) => isProbed);
  return there.map((kernel) => ({
    name: kernel.name,
    guid: kernel.nodeGuid,
    nodeType:
      kernel.transport === TransportVerb.IBV_TRANSPORT_IWARP
        ? NodeTypeVerb.IBV_NODE_RNIC
        : NodeTypeVerb.IBV_NODE_CA,
    transportType: kernel.transport,
    kernel,
    platform,
  }));
}

/** The name of a device (ibv_get_device_name). */
export const getDeviceName = (device: IbvDevice): string => device.name;

/** Opens a device: this process gets its own doorbell page (ibv_open_device). */
export async function openDevice(device: IbvDevice): Promise<IbvContext> {
  const { platform } = device;
  return verb('ibv_open_device', async () => {
    await platform.cpu.settle();
    const kernel = await device.kernel.openDevice(platform.cpu, platform.memory);
    const forgetExit = platform.onExit?.((cpu) => kernel.close(cpu));
    return {
      device,
      cpu: platform.cpu,
      numCompVectors: kernel.info.completionVectors,
      platform,
      kernel,
      info: kernel.info,
      qpTable: new QpTable(kernel.info.qpTableSize),
      cqRecords: new RecordPool(platform.memory, cqRecord.sizeBytes),
      receiveRecords: new RecordPool(platform.memory, receiveRecord.sizeBytes),
      cqs: new Map(),
      qps: new Map(),
      srqs: new Map(),
      xrcSrqs: new Map(),
      blueFlameHalf: 0,
      forgetExit: forgetExit ?? (() => {}),
    };
  });
}

/** Closes a device; the kernel destroys the objects that the program left open (ibv_close_device). */
export async function closeDevice(context: IbvContext): Promise<void> {
  await verb('ibv_close_device', async () => {
    await context.cpu.settle();
    await context.kernel.close(context.cpu);
    context.forgetExit();
  });
}

/** Limits of the device (ibv_query_device). */
export const queryDevice = (context: IbvContext): Promise<DeviceAttr> =>
  verb('ibv_query_device', () => context.kernel.queryDevice(context.cpu));

/** State of a port, from 1 (ibv_query_port). */
export const queryPort = (context: IbvContext, portNum: number): Promise<PortAttr> =>
  verb('ibv_query_port', async () => {
    checkArguments('ibv_query_port', ['portNum', portNum, uint8Max]);
    return context.kernel.queryPort(context.cpu, portNum);
  });

/** The 16 bytes of a GID (ibv_query_gid). */
export const queryGid = (context: IbvContext, portNum: number, index: number): Promise<Uint8Array> =>
  verb('ibv_query_gid', async () => {
    checkArguments('ibv_query_gid', ['portNum', portNum, uint8Max], ['index', index, uint16Max]);
    return context.kernel.queryGid(context.cpu, portNum, index);
  });

/** The non-empty GIDs of a port, with their indices and types (ibv_query_gid_table, for one port). */
export const queryGidTable = (context: IbvContext, portNum: number): Promise<GidEntry[]> =>
  verb('ibv_query_gid_table', async () => {
    checkArguments('ibv_query_gid_table', ['portNum', portNum, uint8Max]);
    return context.kernel.queryGidTable(context.cpu, portNum);
  });

/**
 * Writes entries of a port's P_Key table from an index on, as the subnet manager does (SubnSet(P_KeyTable); libibverbs has no
 * such verb: OpenSM reads it from partitions.conf). A P_Key with the highest bit is a full member's, a P_Key without it is a
 * limited member's; 0 is an empty entry. IBV_EVENT_PKEY_CHANGE follows.
 * @throws VerbsError EINVAL beyond the table, EOPNOTSUPP on Ethernet
 */
export const smSetPkeys = (
  context: IbvContext,
  portNum: number,
  index: number,
  pkeys: readonly number[],
): Promise<void> =>
  verb('umad_send', async () => {
    checkArguments('umad_send', ['portNum', portNum, uint8Max], ['index', index, uint16Max]);
    return context.kernel.setPkeys(context.cpu, portNum, index, pkeys);
  });

/** A P_Key (ibv_query_pkey). */
export const queryPkey = (context: IbvContext, portNum: number, index: number): Promise<number> =>
  verb('ibv_query_pkey', async () => {
    checkArguments('ibv_query_pkey', ['portNum', portNum, uint8Max], ['index', index, uint16Max]);
    return context.kernel.queryPkey(context.cpu, portNum, index);
  });

/** Attributes of a device beyond {@link DeviceAttr} (ibv_device_attr_ex); 0 if this device lacks the feature. */
export interface DeviceAttrEx {
  readonly origAttr: DeviceAttr;
  /** Mask of a completion's timestamp, and the clock that counts it, in kHz. */
  readonly completionTimestampMask: bigint;
  readonly hcaCoreClock: number;
  readonly deviceCapFlagsEx: number;
  readonly odpCaps: { readonly generalCaps: number; readonly rcOdpCaps: number };
  readonly tsoCaps: { readonly maxTso: number; readonly supportedQpts: number };
  readonly rssCaps: { readonly supportedQpts: number; readonly maxRwqIndirectionTables: number };
  readonly maxWqTypeRq: number;
  readonly rawPacketCaps: number;
  readonly cqModCaps: { readonly maxCqCount: number; readonly maxCqPeriod: number };
  readonly maxDmSize: number;
  readonly physPortCntEx: number;
}

/** IBV_ODP_SUPPORT, and for RC all of send, receive, WRITE, READ and atomics (ibv_odp_transport_cap_bits). */
const odpSupport = 1;
const odpOfRc = 0x1f;

/** Limits of the device and its extensions (ibv_query_device_ex). Makes one system call, like {@link queryDevice}. */
export async function queryDeviceEx(context: IbvContext): Promise<DeviceAttrEx> {
  const origAttr = await queryDevice(context);
  return {
    origAttr,
    completionTimestampMask: origAttr.completionTimestampMask,
    hcaCoreClock: origAttr.hcaCoreClockKhz,
    deviceCapFlagsEx: origAttr.deviceCapFlags,
    odpCaps: { generalCaps: odpSupport, rcOdpCaps: odpOfRc },
    tsoCaps: { maxTso: 0, supportedQpts: 0 },
    rssCaps: { supportedQpts: 0, maxRwqIndirectionTables: 0 },
    maxWqTypeRq: 0,
    rawPacketCaps: 0,
    cqModCaps: { maxCqCount: origAttr.maxCqModerationCount, maxCqPeriod: origAttr.maxCqModerationPeriodUs },
    maxDmSize: 0,
    physPortCntEx: origAttr.physPortCnt,
  };
}

/** The index of a P_Key in a port's table (ibv_get_pkey_index). @returns -1 if the table does not contain it */
export async function getPkeyIndex(context: IbvContext, portNum: number, pkey: number): Promise<number> {
  const { pkeyTblLen } = await queryPort(context, portNum);
  for (let index = 0; index < pkeyTblLen; index++)
    if ((await queryPkey(context, portNum, index)) === pkey) return index;
  return -1;
}
