/** The program of `hca devinfo`: all results of the query verbs for the first device, as plain data. */

import type { ProgramContext } from '../../machine/index.ts';
import {
  closeDevice,
  type DeviceAttr,
  type GidEntry,
  getDeviceList,
  getDeviceName,
  IBV_GID_TYPE_ROCE_V2,
  IBV_LINK_LAYER_ETHERNET,
  IBV_TRANSPORT_IWARP,
  openDevice,
  type PortAttr,
  queryDevice,
  queryGid,
  queryGidTable,
  queryPort,
} from '../../userlib/index.ts';

/** Attributes of 64 bits, which no JSON number represents. */
type WideAttr = 'nodeGuid' | 'sysImageGuid' | 'maxMrSize' | 'completionTimestampMask';

/** Attributes by their names in libibverbs; GUIDs and numbers of 64 bits as hexadecimal text. */
export interface DeviceQuery {
  readonly name: string;
  /** Left out for InfiniBand and RoCE. */
  readonly transport?: 'iWARP';
  readonly device: {
    readonly [Name in keyof DeviceAttr]: Name extends WideAttr ? string : DeviceAttr[Name];
  };
  readonly numCompVectors: number;
  readonly ports: readonly {
    readonly number: number;
    readonly port: PortAttr;
    readonly gid0: string;
    /** For an Ethernet port, its existing GIDs: text as `ibv_devinfo` prints it. */
    readonly gids?: readonly { readonly index: number; readonly gid: string; readonly type: string }[];
  }[];
}

export async function queryFirstDevice({ verbs }: ProgramContext): Promise<DeviceQuery | null> {
  const [device] = getDeviceList(verbs);
  if (device === undefined) return null;
  const context = await openDevice(device);
  const attributes = await queryDevice(context);
  const ports: DeviceQuery['ports'][number][] = [];
  for (let number = 1; number <= attributes.physPortCnt; number++) {
    const port = await queryPort(context, number);
    const gid = await queryGid(context, number, 0);
    const ofEthernet =
      port.linkLayer === IBV_LINK_LAYER_ETHERNET
        ? { gids: (await queryGidTable(context, number)).map(entryText) }
        : {};
    ports.push({ number, port: { ...port }, gid0: gidText(gid), ...ofEthernet });
  }
  const plain = {
    ...attributes,
    nodeGuid: guidText(attributes.nodeGuid),
    sysImageGuid: guidText(attributes.sysImageGuid),
    maxMrSize: hexText(attributes.maxMrSize),
    completionTimestampMask: hexText(attributes.completionTimestampMask, 16),
  };
  const query: DeviceQuery = {
    name: getDeviceName(device),
    ...(device.transportType === IBV_TRANSPORT_IWARP ? { transport: 'iWARP' } : {}),
    device: plain,
    numCompVectors: context.numCompVectors,
    ports,
  };
  await closeDevice(context);
  return query;
}

const hexText = (value: bigint, digits = 0): string => `0x${value.toString(16).padStart(digits, '0')}`;

/** A GUID in four groups, as the tools print it. */
const guidText = (guid: bigint): string =>
  guid
    .toString(16)
    .padStart(16, '0')
    .replace(/(.{4})(?!$)/g, '$1:');

const gidText = (gid: Uint8Array): string =>
  Array.from(gid, (byte) => byte.toString(16).padStart(2, '0'))
    .join('')
    .replace(/(.{4})(?!$)/g, '$1:');

function entryText({
  gid,
  gidIndex: index,
  gidType,
}: GidEntry): Required<DeviceQuery['ports'][number]>['gids'][number] {
  return gidType === IBV_GID_TYPE_ROCE_V2
    ? { index, gid: internetText(gid), type: 'RoCE v2' }
    : { index, gid: gidText(gid), type: 'RoCE v1' };
}

/** As inet_ntop writes an IPv6 address: RFC 5952; for a mapped IPv4 address, the last four bytes in decimal. */
function internetText(gid: Uint8Array): string {
  const words = Array.from({ length: 8 }, (_, at) => (gid[2 * at]! << 8) | gid[2 * at + 1]!);
  if (words.slice(0, 5).every((word) => word === 0) && words[5] === 0xffff)
    return `::ffff:${gid.subarray(12).join('.')}`;
  let [longest, length] = [0, 0];
  for (let at = 0; at < words.length; at++) {
    const end = words.findIndex((word, place) => place >= at && word !== 0);
    const zeros = (end === -1 ? words.length : end) - at;
    if (zeros > length) [longest, length] = [at, zeros];
  }
  const textOf = (part: readonly number[]): string => part.map((word) => word.toString(16)).join(':');
  if (length < 2) return textOf(words);
  return `${textOf(words.slice(0, longest))}::${textOf(words.slice(longest + length))}`;
}
