/** The program behind `hca devinfo`: everything the query verbs say of the first device, as plain data. */
import {
  closeDevice,
  type DeviceAttr,
  getDeviceList,
  getDeviceName,
  openDevice,
  type PortAttr,
  queryDevice,
  queryGid,
  queryPort,
} from '../../userlib/index.ts';
import type { JsonValue, ProgramContext } from '../machine/index.ts';

/** Attributes of 64 bits, which no number of JSON holds. */
type WideAttr = 'nodeGuid' | 'sysImageGuid' | 'maxMrSize' | 'completionTimestampMask';

/** Attributes by their names in libibverbs; GUIDs and numbers of 64 bits as hexadecimal text. */
export interface DeviceQuery {
  readonly name: string;
  readonly device: {
    readonly [Name in keyof DeviceAttr]: Name extends WideAttr ? string : DeviceAttr[Name];
  };
  readonly numCompVectors: number;
  readonly ports: readonly {
    readonly number: number;
    readonly port: PortAttr;
    readonly gid0: string;
  }[];
}

export async function queryFirstDevice({ verbs }: ProgramContext): Promise<JsonValue> {
  const [device] = getDeviceList(verbs);
  if (device === undefined) return null;
  const context = await openDevice(device);
  const attributes = await queryDevice(context);
  const ports: DeviceQuery['ports'][number][] = [];
  for (let number = 1; number <= attributes.physPortCnt; number++) {
    const port = await queryPort(context, number);
    const gid = await queryGid(context, number, 0);
    ports.push({ number, port: { ...port }, gid0: gidText(gid) });
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
    device: plain,
    numCompVectors: context.numCompVectors,
    ports,
  };
  await closeDevice(context);
  return query as unknown as JsonValue;
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
