/**
 * One table of ICM, the device's context memory in host pages: mapped in chunks of 256 KiB when the first object in a chunk is
 * created, unmapped when its last one is destroyed. Chunks of reserved entries stay until the device is removed.
 *
 *   entry index -> chunk (index × entry bytes / 256 KiB) -> runs of host pages -> MAP_ICM
 *
 * Promises: `use` and `release` of the same entry balance; a failed `use` changes nothing; the driver finds the host memory of
 * an entry with `physicalAddressOf` (it writes MTT entries there). Sources: interface sheet 4.2, 3.6.
 */
import { icmChunkBytes, icmPageBytes } from '../abi/index.ts';
import { InvariantError, roundUp } from '../base/index.ts';
import type { CommandInterface } from './command-interface.ts';
import { donate, givePages, leaveToDevice, type Run, takePages } from './donation.ts';
import { Mutex } from './mutex.ts';
import type { Cpu, DriverPlatform } from './platform.ts';

/** Position of a table in ICM. */
export interface IcmRegion {
  readonly name: string;
  readonly baseAddress: number;
  readonly entryBytes: number;
  readonly entryCount: number;
}

interface Chunk {
  readonly runs: readonly Run[];
  users: number;
}

export class IcmTable {
  readonly region: IcmRegion;
  private readonly platform: DriverPlatform;
  private readonly commands: CommandInterface;
  private readonly lock: Mutex;
  private readonly chunks: (Chunk | undefined)[] = [];

  constructor(platform: DriverPlatform, commands: CommandInterface, region: IcmRegion) {
    this.platform = platform;
    this.commands = commands;
    this.region = region;
    this.lock = new Mutex(() => platform.newSignal());
  }

  /** Chunks that are mapped now. */
  get mappedChunks(): number {
    return this.chunks.reduce((count, chunk) => count + (chunk === undefined ? 0 : 1), 0);
  }

  /** Maps the chunks of the first `entries` permanently. */
  async mapReserved(cpu: Cpu, entries: number): Promise<void> {
    if (entries > 0) await this.use(cpu, 0, entries);
  }

  /** Makes sure that `count` entries from `index` on are mapped, and counts one user of each of their chunks. */
  async use(cpu: Cpu, index: number, count = 1): Promise<void> {
    const first = this.chunkOf(index);
    const last = this.chunkOf(index + count - 1);
    await this.lock.run(cpu, async () => {
      for (let at = first; at <= last; at++) {
        try {
          await this.useChunk(cpu, at);
        } catch (error) {
          for (let undo = at - 1; undo >= first; undo--) await this.releaseChunk(cpu, undo);
          throw error;
        }
      }
    });
  }

  /** The counterpart of `use`; unmaps chunks without users. */
  async release(cpu: Cpu, index: number, count = 1): Promise<void> {
    await this.lock.run(cpu, async () => {
      for (let at = this.chunkOf(index); at <= this.chunkOf(index + count - 1); at++) {
        await this.releaseChunk(cpu, at);
      }
    });
  }

  /** Unmaps everything in ascending order: the device is being removed. */
  async close(cpu: Cpu): Promise<void> {
    for (let at = 0; at < this.chunks.length; at++) await this.unmap(cpu, at);
  }

  /** Frees the host pages without a command to the device: it was reset, or never answers again. */
  abandon(): void {
    for (const chunk of this.chunks) if (chunk !== undefined) givePages(this.platform.memory, chunk.runs);
    this.chunks.length = 0;
  }

  /** The driver writes translations itself, and edits regions that it has taken back; only the device writes all other tables. */
  private get isWrittenBySoftware(): boolean {
    return this.region.name === 'mtt' || this.region.name === 'dmpt';
  }

  /** Host address of an entry in use, in a table that software writes. */
  physicalAddressOf(index: number): number {
    if (!this.isWrittenBySoftware)
      throw new InvariantError('table written to by the driver', this.region.name, 'mtt or dmpt');
    const offset = index * this.region.entryBytes;
    let rest = offset % icmChunkBytes;
    for (const run of this.chunks[this.chunkOf(index)]?.runs ?? []) {
      const runBytes = run.pages * icmPageBytes;
      if (rest < runBytes) return run.address + rest;
      rest -= runBytes;
    }
    throw new InvariantError(`${this.region.name} entry`, index, 'an entry of a mapped chunk');
  }

  private chunkOf(index: number): number {
    return Math.floor((index * this.region.entryBytes) / icmChunkBytes);
  }

  private async useChunk(cpu: Cpu, at: number): Promise<void> {
    const chunk = this.chunks[at];
    if (chunk !== undefined) {
      chunk.users++;
      return;
    }
    const offset = at * icmChunkBytes;
    const { entryBytes, entryCount, baseAddress } = this.region;
    const bytes = roundUp(Math.min(icmChunkBytes, entryBytes * entryCount - offset), icmPageBytes);
    const runs = takePages(this.platform.memory, bytes / icmPageBytes);
    if (!this.isWrittenBySoftware) leaveToDevice(this.platform.memory, runs);
    try {
      await donate(cpu, this.commands, 'MAP_ICM', runs, baseAddress + offset);
    } catch (error) {
      givePages(this.platform.memory, runs);
      throw error;
    }
    this.chunks[at] = { runs, users: 1 };
  }

  private async releaseChunk(cpu: Cpu, at: number): Promise<void> {
    const chunk = this.chunks[at];
    if (chunk === undefined)
      throw new InvariantError(`${this.region.name} chunk to release`, at, 'a mapped chunk');
    chunk.users--;
    if (chunk.users === 0) await this.unmap(cpu, at);
  }

  private async unmap(cpu: Cpu, at: number): Promise<void> {
    const chunk = this.chunks[at];
    if (chunk === undefined) return;
    await this.commands.execute(cpu, 'UNMAP_ICM', {
      input: this.region.baseAddress + at * icmChunkBytes,
      inputModifier: icmChunkBytes / icmPageBytes,
    });
    this.chunks[at] = undefined;
    givePages(this.platform.memory, chunk.runs);
  }
}
