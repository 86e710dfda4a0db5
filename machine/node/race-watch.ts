/**
 * Watches buffer ownership: the device owns the buffers of a work request from its post until its completion was
 * polled.
 *
 *     device reads (SEND, WRITE)              the program may read, and must not write
 *     device writes (READ, atomic, receive)   the program must neither read nor write
 *     both                                    the program must not unmap, move, replace or protect the memory
 *
 * The program owns inline data again immediately after the post. A completion of a send queue also ends earlier
 * requests without completions. The watch is an observer: it sees posts and polls of the verbs library and the
 * program's memory accesses, and changes nothing. It does not cover buffers that the peer reaches by rkey: the programs
 * agree on their ownership.
 */
import type { CoreThread } from '../../host/index.ts';
import type { ExactPs } from '../../sim/index.ts';
import {
  type BufferWatch,
  IBV_SEND_INLINE,
  type IbvRecvWr,
  type IbvSendWr,
  type IbvSge,
} from '../../userlib/index.ts';

/** A program's access to memory. */
export type ProgramAccess = 'read' | 'write' | 'unmap' | 'remap' | 'protect' | 'dontNeed';

export interface RaceSide {
  readonly address: number;
  readonly lengthBytes: number;
  readonly atPs: ExactPs;
}

/** Two accesses, one of which should have waited for the other. */
export interface Race {
  /** An access, with its actor and the actor's own time. */
  readonly program: RaceSide & {
    readonly name: string;
    readonly core: number;
    readonly access: ProgramAccess;
  };
  /** The work request that owned the buffer, and the time of its post. */
  readonly device: RaceSide & {
    readonly access: 'reads' | 'writes';
    readonly queue: string;
    readonly wrId: number;
    /** The verb's opcode; undefined for a receive. */
    readonly opcode: number | undefined;
  };
}

interface Held {
  readonly process: number;
  readonly queue: string;
  readonly number: number;
  readonly isDeviceWrite: boolean;
  readonly wrId: number;
  readonly opcode: number | undefined;
  readonly sge: IbvSge;
  readonly atPs: ExactPs;
}

/** Verbs opcodes whose buffers the device writes: RDMA_READ, the two atomics. */
const writingOpcodes = [4, 5, 6];
const racesMax = 1000;
const counterMask = 0xffff;

/** One host's watch. */
export class RaceWatch {
  readonly races: Race[] = [];
  /** Races beyond the kept ones. */
  lostRaces = 0;
  #held: Held[] = [];
  readonly #instantOf: (ps: number) => ExactPs;

  /** @param instantOf converts a picosecond of the epoch to time since power-on */
  constructor(instantOf: (ps: number) => ExactPs) {
    this.#instantOf = instantOf;
  }

  /** The listener for the verbs library of one process. */
  bufferWatchOf(process: number): BufferWatch {
    const receives = new Map<string, number>();
    return {
      sendPosted: (qpNumber, counter, wr, atPs) => this.#sendPosted(process, qpNumber, counter, wr, atPs),
      sendCompleted: (qpNumber, counter) =>
        this.#release(
          ({ queue, number }) => queue === sendQueue(qpNumber) && ((counter - number) & counterMask) < 0x8000,
        ),
      receivePosted: (queue, slot, wr, atPs) => {
        const number = slot >= 0 ? slot : (receives.get(queue) ?? 0);
        if (slot < 0) receives.set(queue, number + 1);
        this.#hold(process, queue, number, true, wr, undefined, atPs);
      },
      receiveCompleted: (queue, slot) => {
        const number = slot >= 0 ? slot : this.#held.find((held) => held.queue === queue)?.number;
        this.#release((held) => held.queue === queue && held.number === number);
      },
      forgotten: (qpNumber) =>
        this.#release(({ queue }) => queue === sendQueue(qpNumber) || queue === `RQ of QP ${qpNumber}`),
    };
  }

  /** Handles a program's access to memory. */
  accessed(
    cpu: CoreThread,
    process: number,
    access: ProgramAccess,
    address: number,
    lengthBytes: number,
  ): void {
    for (const held of this.#held) {
      const { sge } = held;
      if (held.process !== process || address >= sge.addr + sge.length || sge.addr >= address + lengthBytes)
        continue;
      if (access === 'read' && !held.isDeviceWrite) continue;
      this.#note(cpu, access, address, lengthBytes, held);
    }
  }

  #sendPosted(process: number, qpNumber: number, counter: number, wr: IbvSendWr, atPs: number): void {
    if ((wr.sendFlags & IBV_SEND_INLINE) !== 0) return;
    const writes = writingOpcodes.includes(wr.opcode);
    this.#hold(process, sendQueue(qpNumber), counter, writes, wr, wr.opcode, atPs);
  }

  #hold(
    process: number,
    queue: string,
    number: number,
    isDeviceWrite: boolean,
    wr: IbvSendWr | IbvRecvWr,
    opcode: number | undefined,
    atPs: number,
  ): void {
    for (let index = 0; index < wr.numSge; index++) {
      const sge = { ...wr.sgList[index]! };
      this.#held.push({
        process,
        queue,
        number,
        isDeviceWrite,
        wrId: wr.wrId,
        opcode,
        sge,
        atPs: this.#instantOf(atPs),
      });
    }
  }

  #release(isOver: (held: Held) => boolean): void {
    this.#held = this.#held.filter((held) => !isOver(held));
  }

  #note(cpu: CoreThread, access: ProgramAccess, address: number, lengthBytes: number, held: Held): void {
    if (this.races.length === racesMax) {
      this.lostRaces++;
      return;
    }
    this.races.push({
      program: { name: cpu.name, core: cpu.coreIndex, access, address, lengthBytes, atPs: cpu.instantPs },
      device: {
        access: held.isDeviceWrite ? 'writes' : 'reads',
        queue: held.queue,
        wrId: held.wrId,
        opcode: held.opcode,
        address: held.sge.addr,
        lengthBytes: held.sge.length,
        atPs: held.atPs,
      },
    });
  }
}

const sendQueue = (qpNumber: number): string => `SQ of QP ${qpNumber}`;

/** A race in one line. */
export function raceText({ program, device }: Race): string {
  const range = ({ address, lengthBytes }: RaceSide): string =>
    `${lengthBytes} bytes at 0x${address.toString(16)}`;
  const request = device.opcode === undefined ? 'receive' : `request of opcode ${device.opcode}`;
  return (
    `${program.name} on core ${program.core} did ${program.access} of ${range(program)} at ${program.atPs} ps: ` +
    `the device ${device.access} ${range(device)} for the ${request}, wr_id ${device.wrId}, in the ${device.queue}, ` +
    `posted at ${device.atPs} ps and not yet completed`
  );
}
