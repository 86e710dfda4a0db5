/**
 * The device's regions as a client reads and writes them: the hot path. A load or store of up to eight bytes, as made by a
 * guest's processor, allocates nothing.
 */
import { constants } from 'node:os';
import { PCI_REGION_COUNT, type VfioUserDevice } from '../device.ts';
import { multiWrite, multiWriteEntry, regionAccess, regionInfo, regionIoDescriptors } from './protocol.ts';
import { PAYLOAD_OFFSET, type Reply } from './reply.ts';

const { EINVAL, EIO } = constants.errno;
const { offset: offsetField, region: regionField, count: countField } = regionAccess.fields;
const entry = multiWriteEntry.fields;
const entryDataBytes = entry.data.lengthBytes;
const dataOffset = PAYLOAD_OFFSET + regionAccess.sizeBytes;

export class DeviceRegions {
  readonly #device: VfioUserDevice;
  readonly #reply: Reply;
  readonly #maxDataBytes: number;
  /** Sizes and rights by region index. */
  readonly #sizeBytes = new Float64Array(PCI_REGION_COUNT);
  readonly #isReadable = new Uint8Array(PCI_REGION_COUNT);
  readonly #isWritable = new Uint8Array(PCI_REGION_COUNT);
  /**
   * Buffers by length up to eight: source of a short write's bytes, and destination of a short read's bytes in the
   * reply.
   */
  readonly #shortWrites: readonly Uint8Array[];
  readonly #shortReads: readonly Uint8Array[];

  constructor(device: VfioUserDevice, reply: Reply, maxDataBytes: number) {
    this.#device = device;
    this.#reply = reply;
    this.#maxDataBytes = maxDataBytes;
    const lengths = Array.from({ length: entryDataBytes + 1 }, (_, length) => length);
    this.#shortWrites = lengths.map((length) => new Uint8Array(length));
    this.#shortReads = lengths.map((length) => reply.bytes.subarray(dataOffset, dataOffset + length));
    for (const { index, sizeBytes, isReadable, isWritable } of device.regions) {
      this.#sizeBytes[index] = sizeBytes;
      this.#isReadable[index] = isReadable ? 1 : 0;
      this.#isWritable[index] = isWritable ? 1 : 0;
    }
  }

  /** DEVICE_GET_REGION_INFO: bytes of the reply's payload, or minus an errno. No region can be mapped by the client. */
  answerInfo(payload: Uint8Array): number {
    if (payload.length < regionInfo.sizeBytes) return -EINVAL;
    const { argumentBytes, index } = regionInfo.decode(payload);
    if (argumentBytes < regionInfo.sizeBytes || index >= PCI_REGION_COUNT) return -EINVAL;
    regionInfo.encodeInto(
      {
        argumentBytes: regionInfo.sizeBytes,
        readable: this.#isReadable[index]!,
        writable: this.#isWritable[index]!,
        index,
        sizeBytes: BigInt(this.#sizeBytes[index]!),
      },
      this.#reply.bytes,
      PAYLOAD_OFFSET,
    );
    return regionInfo.sizeBytes;
  }

  /** DEVICE_GET_REGION_IO_FDS: no part of a region has a descriptor of its own. */
  answerIoDescriptors(payload: Uint8Array): number {
    const { sizeBytes } = regionIoDescriptors;
    if (payload.length < sizeBytes) return -EINVAL;
    const { argumentBytes, flags, index, count } = regionIoDescriptors.decode(payload);
    if (argumentBytes < sizeBytes || flags !== 0 || count !== 0 || index >= PCI_REGION_COUNT) return -EINVAL;
    regionIoDescriptors.encodeInto({ argumentBytes: sizeBytes, index }, this.#reply.bytes, PAYLOAD_OFFSET);
    return sizeBytes;
  }

  /** REGION_READ: bytes of the reply's payload, or minus an errno. */
  read(view: DataView, offset: number, payloadBytes: number): number {
    if (payloadBytes < regionAccess.sizeBytes) return -EINVAL;
    const region = regionField.get(view, offset);
    const count = countField.get(view, offset);
    const regionOffset = offsetField.getNumber(view, offset);
    if (!this.#isInside(region, regionOffset, count) || this.#isReadable[region] === 0) return -EINVAL;
    const into =
      count <= entryDataBytes
        ? this.#shortReads[count]!
        : this.#reply.bytes.subarray(dataOffset, dataOffset + count);
    into.fill(0);
    if (count > 0 && !this.#device.regionRead(region, regionOffset, into)) return -EIO;
    this.#echo(regionOffset, region, count);
    return regionAccess.sizeBytes + count;
  }

  /** REGION_WRITE: bytes of the reply's payload, or minus an errno. */
  write(bytes: Uint8Array, view: DataView, offset: number, payloadBytes: number): number {
    if (payloadBytes < regionAccess.sizeBytes) return -EINVAL;
    const region = regionField.get(view, offset);
    const count = countField.get(view, offset);
    const regionOffset = offsetField.getNumber(view, offset);
    if (payloadBytes !== regionAccess.sizeBytes + count) return -EINVAL;
    const errno = this.#store(region, regionOffset, count, bytes, offset + regionAccess.sizeBytes);
    if (errno !== 0) return -errno;
    this.#echo(regionOffset, region, count);
    return regionAccess.sizeBytes;
  }

  /** REGION_WRITE_MULTI: the writes in order up to the first failed one; returns bytes of the reply's payload or minus an errno. */
  writeMulti(bytes: Uint8Array, view: DataView, offset: number, payloadBytes: number): number {
    if (payloadBytes < multiWrite.sizeBytes) return -EINVAL;
    const count = multiWrite.fields.count.getNumber(view, offset);
    if (payloadBytes !== multiWrite.sizeBytes + count * multiWriteEntry.sizeBytes) return -EINVAL;
    for (let at = 0; at < count; at++) {
      const entryOffset = offset + multiWrite.sizeBytes + at * multiWriteEntry.sizeBytes;
      const lengthBytes = entry.count.get(view, entryOffset);
      if (lengthBytes > entryDataBytes) return -EINVAL;
      const region = entry.region.get(view, entryOffset);
      const regionOffset = entry.offset.getNumber(view, entryOffset);
      const errno = this.#store(
        region,
        regionOffset,
        lengthBytes,
        bytes,
        entryOffset + entry.data.wordOffset,
      );
      if (errno !== 0) return -errno;
    }
    multiWrite.fields.count.setNumber(this.#reply.view, PAYLOAD_OFFSET, count);
    return multiWrite.sizeBytes;
  }

  /** Writes `count` bytes at `at` to the device; returns 0 or an errno. */
  #store(region: number, regionOffset: number, count: number, bytes: Uint8Array, at: number): number {
    if (!this.#isInside(region, regionOffset, count) || this.#isWritable[region] === 0) return EINVAL;
    if (count === 0) return 0;
    if (count > entryDataBytes) {
      return this.#device.regionWrite(region, regionOffset, bytes.subarray(at, at + count)) ? 0 : EIO;
    }
    const short = this.#shortWrites[count]!;
    for (let index = 0; index < count; index++) short[index] = bytes[at + index]!;
    return this.#device.regionWrite(region, regionOffset, short) ? 0 : EIO;
  }

  #isInside(region: number, regionOffset: number, count: number): boolean {
    return (
      region < PCI_REGION_COUNT &&
      count <= this.#maxDataBytes &&
      regionOffset + count <= this.#sizeBytes[region]!
    );
  }

  #echo(regionOffset: number, region: number, count: number): void {
    offsetField.setNumber(this.#reply.view, PAYLOAD_OFFSET, regionOffset);
    regionField.set(this.#reply.view, PAYLOAD_OFFSET, region);
    countField.set(this.#reply.view, PAYLOAD_OFFSET, count);
  }
}
