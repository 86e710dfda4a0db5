/**
 * Connections as the driver makes and ends them, by its commands alone: which queue pair answers whom, from which PSN on. For those who
 * read the packets of a cable, which name the queue pair that they go to and not the one that they come from.
 */
import { mtuBytesOf, qpMailbox, ServiceType } from '../../abi/index.ts';
import { mask24, toHex } from '../../base/index.ts';
import type { InstantOf } from '../trace-event.ts';
import type { ObservedCommand } from './command-register.ts';

/** One end of a connection (RC or XRC), from its INIT2RTR_QP on. */
export interface ConnectionEnd {
  readonly qpn: number;
  readonly remoteQpn: number;
  /** Of the path: LID of the other port, 0 on Ethernet; its MAC in hexadecimal, zeros on InfiniBand. */
  readonly remoteLid: number;
  readonly remoteMac: string;
  readonly mtuBytes: number;
  /** The first PSN that it expects. */
  readonly firstPsn: number;
  /** When the command was posted, in picoseconds since power-on. */
  readonly fromPs: number | bigint;
  /** When the end was seen to be in RESET again, or its device was; undefined: never. */
  readonly untilPs: number | bigint | undefined;
}

const isConnected = new Set<number>([ServiceType.RC, ServiceType.XRC]);

export class Connections {
  readonly ends: ConnectionEnd[] = [];
  readonly #instantOf: InstantOf;
  /** Places in {@link ends} of those that are open, by QP number. */
  readonly #open = new Map<number, number>();

  constructor(instantOf: InstantOf) {
    this.#instantOf = instantOf;
  }

  /** A command has finished; one without an answer may have been carried out. */
  finished({ name, inputModifier, inBox, status, postedPs, finishedPs }: ObservedCommand): void {
    if (status > 0) return;
    const qpn = inputModifier & mask24;
    if (name === 'CLOSE_HCA') return this.reset(finishedPs);
    if (name === '2RST_QP' || name === 'RST2INIT_QP') this.#close(qpn, status < 0 ? postedPs : finishedPs);
    if (name !== 'INIT2RTR_QP' || inBox === undefined) return;
    const { serviceType, remoteQpn, pathMtu, nextReceivePsn, primaryPath } = qpMailbox.decode(inBox).context;
    if (!isConnected.has(serviceType)) return;
    const { remoteLid, destinationMac } = primaryPath;
    this.#close(qpn, postedPs);
    const end: ConnectionEnd = {
      qpn,
      remoteQpn,
      remoteLid,
      remoteMac: toHex(destinationMac),
      mtuBytes: mtuBytesOf(pathMtu),
      firstPsn: nextReceivePsn,
      fromPs: this.#instantOf(postedPs),
      untilPs: undefined,
    };
    this.#open.set(qpn, this.ends.push(end) - 1);
  }

  /** The device holds nothing any more. */
  reset(nowPs: number): void {
    for (const qpn of [...this.#open.keys()]) this.#close(qpn, nowPs);
  }

  #close(qpn: number, atPs: number): void {
    const place = this.#open.get(qpn);
    if (place === undefined) return;
    this.ends[place] = { ...this.ends[place]!, untilPs: this.#instantOf(atPs) };
    this.#open.delete(qpn);
  }
}
