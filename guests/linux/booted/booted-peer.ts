/** The program of a simulated host beside a Linux of this process: values of its exchange, and its end, all in simulated time. */
import type { JsonValue } from '../../../machine/index.ts';
import type { MachineConfig } from '../../../machine/profile/index.ts';
import type { PcPeer } from '../../pc/index.ts';
import type { PeerProgram, PeerState } from '../../serve/index.ts';
import { meetingPort } from '../image/init-scripts.ts';
import { peerNetworkAddresses } from '../peer-network.ts';
import type { BootedLinux } from './booted-linux.ts';

/** A value that the program has put into its exchange. */
export interface PeerValue {
  readonly name: string;
  readonly value: JsonValue;
}

const psPerMs = 1e9;
/** Simulated time that the program may take to end. */
const endPs = 60 * 1000 * psPerMs;

export class BootedPeer {
  readonly #linux: BootedLinux;
  /** Values from the program that {@link take} has not returned yet. */
  readonly #values: PeerValue[];

  constructor(linux: BootedLinux, values: PeerValue[]) {
    this.#linux = linux;
    this.#values = values;
  }

  /** The program's outcome so far. */
  get state(): PeerState {
    return this.#linux.machine.emulation.peer!.state();
  }

  /** Puts a value into a mailbox of the program. */
  put(name: string, value: JsonValue): void {
    this.#linux.putValue(name, value);
  }

  /** The next value that the program puts by this name; undefined if it has ended, or none arrives within the limit. @throws GuestError */
  async take(name: string, limitMs: number): Promise<JsonValue | undefined> {
    const hasValue = (): boolean => this.#values.some((each) => each.name === name);
    const hasEnded = (): boolean => this.state.outcome !== 'running';
    await this.#linux.until(() => hasValue() || hasEnded(), limitMs * psPerMs);
    const at = this.#values.findIndex((each) => each.name === name);
    return at < 0 ? undefined : this.#values.splice(at, 1)[0]!.value;
  }

  /** Waits until the program has ended, or does not end within a minute; its outcome. @throws GuestError */
  async ended(): Promise<PeerState> {
    await this.#linux.until(() => this.state.outcome !== 'running', endPs);
    return this.state;
  }
}

/** The simulated host as the PC has it: with a NIC it is reached by the cable alone. */
export function pcPeerOf(
  program: PeerProgram,
  { machine }: MachineConfig,
  onValue: PcPeer['onValue'],
): PcPeer {
  const { guest, peer } = peerNetworkAddresses;
  const network = { pc: addressOf(guest), peer: addressOf(peer), port: meetingPort };
  return { program, onValue, ...(machine.adapter === 'hca' ? { network } : {}) };
}

/** An IPv4 address as a number. */
const addressOf = (text: string): number =>
  text.split('.').reduce((address, byte) => address * 256 + Number(byte), 0);
