/**
 * Connections as the driver makes and ends them, from its commands alone: the peer QP of each QP and the first PSN.
 * Needed to read packets on a cable, which name their destination QP but not their source QP.
 */
import { mtuBytesOf, qpMailbox, ServiceType } from '../../abi/index.ts';
import { mask24, toHex } from '../../base/index.ts';
import type { InstantOf } from '../trace-event.ts';
import type { ObservedCommand } from './command-register.ts';

/** One end of a connection (RC or XRC), from INIT2RTR_QP on. */
export interface ConnectionEnd {
  readonly qpn: number;
  readonly remoteQpn: number;
  /** The path's remote port: its LID (0 on Ethernet) and its MAC in hexadecimal (zeros on InfiniBand). */
  readonly remoteLid: number;
  readonly remoteMac: string;
  readonly mtuBytes: number;
  /** The first PSN that this end expects. */
  readonly firstPsn: number;
  /** Time at which the command was posted, in picoseconds since power-on. */
  readonly fromPs: number | bigint;
  /** Time at which the end or its device was seen in RESET again; undefined if never. */
  readonly untilPs: number | bigint | undefined;
}

const isConnected = new Set<number>([ServiceType.RC, ServiceType.XRC]);

export class Connections {
  readonly ends: ConnectionEnd[] = [];
  readonly #instantOf: InstantOf;
  /** Indexes of open ends in {@link ends}, by QP number. */
  readonly #open = new Map<number, number>();

  constructor(instantOf: InstantOf) {
    this.#instantOf = instantOf;
  }

  /** Handles a finished command; a command without an answer may have been executed. */
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

  /** Handles a reset: the device keeps nothing. */
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
