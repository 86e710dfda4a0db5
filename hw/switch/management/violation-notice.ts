/**
 * Trap 259 of a switch: reports to the subnet manager a packet whose P_Key a port rejected. At most one trap is sent for each
 * subnet timeout, and none is repeated; other violations are counted alone (IBTA volume 1, 13.4.9, 14.2.5.1).
 */
import { NoticeType, SwitchPkeyValid, switchPkeyDetails, TRAP_SWITCH_PKEY } from '../../../abi/index.ts';
import { NEVER, type Picoseconds } from '../../../base/index.ts';
import type { PacketIdentity } from '../../../wire/index.ts';
import type { Trap } from './trap.ts';

/** A packet that a port of the switch did not accept. */
export interface PartitionViolation extends PacketIdentity {
  /** Port, from 1, that checked it. */
  readonly port: number;
  /** Port, from 1, by which it came. */
  readonly input: number;
}

export class ViolationNotice {
  /** The first violation since a trap may be sent, and its instant. */
  #violation: PartitionViolation | undefined;
  #violatedPs = NEVER;
  #allowedPs = Number.NEGATIVE_INFINITY;

  /** Notes a violation. If several occur at one instant, the one at the lowest port counts, whatever their order. */
  violated(violation: PartitionViolation, nowPs: Picoseconds): void {
    if (nowPs < this.#allowedPs || nowPs > this.#violatedPs) return;
    const noted = nowPs === this.#violatedPs ? this.#violation : undefined;
    if (noted !== undefined && byPorts(noted, violation) <= 0) return;
    this.#violation = violation;
    this.#violatedPs = nowPs;
  }

  /** The violation of an earlier instant of which a trap is due; the next one is due no earlier than `intervalPs` from now. */
  take(nowPs: Picoseconds, intervalPs: Picoseconds): PartitionViolation | undefined {
    if (this.#violatedPs >= nowPs) return undefined;
    const violation = this.#violation;
    this.#violation = undefined;
    this.#violatedPs = NEVER;
    this.#allowedPs = nowPs + intervalPs;
    return violation;
  }

  /** Handles a new epoch: see TimeKeeper. */
  rebase(ps: Picoseconds): void {
    this.#violatedPs -= ps;
    this.#allowedPs -= ps;
  }
}

/** The trap of a switch with this LID. */
export function violationTrap(violation: PartitionViolation, switchLid: number): Trap {
  const details = detailsOf(violation, switchLid);
  return { type: NoticeType.SECURITY, trapNumber: TRAP_SWITCH_PKEY, details };
}

const byPorts = (left: PartitionViolation, right: PartitionViolation): number =>
  left.input - right.input || left.port - right.port;

/** A packet of a connection does not name its source QP, and one without a GRH no GID. */
function detailsOf(violation: PartitionViolation, switchLid: number): Uint8Array {
  const { sourceQpn, gids, port, sourceLid, destinationLid, pkey, serviceLevel } = violation;
  const valid = SwitchPkeyValid;
  const dataValid =
    valid.SOURCE_LID | valid.DESTINATION_LID | valid.PKEY | valid.SERVICE_LEVEL | valid.DESTINATION_QP;
  const bytes = new Uint8Array(switchPkeyDetails.sizeBytes);
  switchPkeyDetails.encodeInto(
    {
      dataValid:
        dataValid |
        (sourceQpn === undefined ? 0 : valid.SOURCE_QP) |
        (gids === undefined ? 0 : valid.SOURCE_GID | valid.DESTINATION_GID),
      ...{ sourceLid, destinationLid, pkey, serviceLevel, switchLid, port },
      sourceQp: sourceQpn ?? 0,
      destinationQp: violation.destinationQpn,
      ...(gids === undefined ? {} : { sourceGid: gids.source, destinationGid: gids.destination }),
    },
    bytes,
  );
  return bytes;
}
