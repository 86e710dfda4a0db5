/**
 * Region accesses that are queued and then sent at once: as many as a guest's machine makes between two calls of the server.
 * Written by the layouts' fields into one buffer, so that an access needs no allocation.
 */
import { viewOf } from '../../../base/index.ts';
import { Command, HEADER_BYTES, header, MESSAGE_COMMAND, regionAccess } from '../vfio-user/protocol.ts';

const outboxBytes = 2 ** 16;
const accessBytes = HEADER_BYTES + regionAccess.sizeBytes;

export class Outbox {
  readonly #bytes = new Uint8Array(new ArrayBuffer(outboxBytes));
  readonly #view = viewOf(this.#bytes);
  #lengthBytes = 0;

  get isEmpty(): boolean {
    return this.#lengthBytes === 0;
  }

  /** Whether a write of this many bytes, or a read (0), no longer has room. */
  isFullFor(dataBytes: number): boolean {
    return this.#lengthBytes + accessBytes + dataBytes > outboxBytes;
  }

  /** Adds a REGION_WRITE that requests no reply. */
  write(id: number, region: number, offset: number, bytes: Uint8Array): void {
    this.#access(id, Command.REGION_WRITE, region, offset, bytes.length, bytes.length);
    this.#bytes.set(bytes, this.#lengthBytes - bytes.length);
  }

  /** Adds a REGION_READ. */
  read(id: number, region: number, offset: number, count: number): void {
    this.#access(id, Command.REGION_READ, region, offset, count, 0);
  }

  /** The added messages, until the next addition; the outbox then forgets them. */
  take(): Uint8Array {
    const taken = this.#bytes.subarray(0, this.#lengthBytes);
    this.#lengthBytes = 0;
    return taken;
  }

  #access(
    id: number,
    command: typeof Command.REGION_READ | typeof Command.REGION_WRITE,
    region: number,
    offset: number,
    count: number,
    dataBytes: number,
  ): void {
    const view = this.#view;
    const at = this.#lengthBytes;
    this.#bytes.fill(0, at, at + accessBytes);
    const { fields } = header;
    fields.id.set(view, at, id);
    fields.command.set(view, at, command);
    fields.sizeBytes.set(view, at, accessBytes + dataBytes);
    fields.type.set(view, at, MESSAGE_COMMAND);
    fields.noReply.set(view, at, command === Command.REGION_WRITE ? 1 : 0);
    regionAccess.fields.offset.setNumber(view, at + HEADER_BYTES, offset);
    regionAccess.fields.region.set(view, at + HEADER_BYTES, region);
    regionAccess.fields.count.set(view, at + HEADER_BYTES, count);
    this.#lengthBytes = at + accessBytes + dataBytes;
  }
}
