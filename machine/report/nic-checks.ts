/**
 * The balances of a machine with NICs, under the names of {@link ChecksReport}. Counted independently: by software, at
 * both ends of PCIe, by the NIC's blocks, and at both ends of the cable.
 *
 *     interrupts   causes = messages + moderated + forgotten + one waiting, for each vector; then as with an HCA
 *     wire         delivered + corrupted + dropped + lost = sent, in frames and bytes, each direction
 *     operations   frames: driver ≥ device = cable; cable = taken + filtered + missed; taken = host + released + on board
 *                  words: a core's and the DMA controller's = those at the packet buffer
 */
import { behind, sumOf, unequal, vectorFailures } from './failures.ts';
import type { CableEnd, FrameLedger } from './frame-ledger.ts';
import type { HostLedger } from './host-ledger.ts';
import type { NicLedger } from './nic-ledger.ts';

const wordBytes = 4;

export function nicBlockFailures(nic: NicLedger): string[] {
  return Object.entries(nic.blocks).flatMap(([name, { busyCycles, idleCycles, stalledCycles, overlaps }]) => {
    const what = `node ${nic.node} ${name}`;
    const stalled = Object.values(stalledCycles);
    return [
      ...unequal(`${what}, cycles`, busyCycles + idleCycles + sumOf(stalled), nic.elapsedCycles),
      ...unequal(`${what}, works that overlapped`, overlaps, 0),
    ];
  });
}

/** Causes of the device and their outcomes; one may wait for each vector. */
export function nicCauseFailures(nic: NicLedger): string[] {
  const {
    interruptsRaised = 0,
    interruptMessages = 0,
    interruptsModerated = 0,
    interruptsForgotten = 0,
  } = nic.counters;
  const waiting = interruptsRaised - interruptMessages - interruptsModerated - interruptsForgotten;
  const what = `node ${nic.node}`;
  return [
    ...unequal(`${what}, messages by vector`, sumOf(nic.messages), interruptMessages),
    ...(waiting >= 0 && waiting <= nic.messages.length ? [] : [`${what}: ${waiting} causes disappeared`]),
    ...nic.vectors.flatMap((vector) => vectorFailures(what, vector)),
  ];
}

export function ethernetFailures(sender: NicLedger, receiver: NicLedger): string[] {
  const isQuiet = sender.isQuiet && receiver.isQuiet;
  const what = `cable ${sender.node} to ${receiver.node}`;
  const { frames = 0, bytes = 0, lostFrames = 0, lostBytes = 0 } = sender.transmitted;
  const { copiedFrames = 0, copiedBytes = 0 } = sender.transmitted;
  const { heldBack } = sender;
  const { received } = receiver;
  const count = (...names: string[]): number => sumOf(names.map((name) => received[name] ?? 0));
  return [
    ...behind(
      `${what}, frames`,
      count('deliveredFrames', 'corruptedFrames', 'fifoDrops', 'linkDownDrops') + lostFrames,
      frames + copiedFrames - heldBack.frames,
      isQuiet,
    ),
    ...behind(
      `${what}, bytes`,
      count('deliveredBytes', 'corruptedBytes', 'droppedBytes') + lostBytes,
      bytes + copiedBytes - heldBack.bytes,
      isQuiet,
    ),
    ...macFailures(sender),
  ];
}

/** Frames that the MAC has sent equal those that its port has accepted. */
export const macFailures = ({ node, transmitted, counters }: NicLedger): string[] =>
  unequal(
    `node ${node}, frames of the MAC`,
    counters['transmitFrames'] ?? 0,
    (transmitted['frames'] ?? 0) + (transmitted['discardedFrames'] ?? 0),
  );

/** A NIC as an end of a cable with an HCA at its other end: a frame that its MAC has accepted is finished. */
export const nicEndOf = (nic: NicLedger): CableEnd & { readonly ethernet: FrameLedger } => ({
  node: nic.node,
  wire: { isQuiet: nic.isQuiet },
  ethernet: {
    transmitted: nic.transmitted,
    received: nic.received,
    // PAUSE frames count like any others: a NIC has no flow control.
    flowControl: {},
    completed: nic.counters['arrivals'] ?? 0,
    packets: 0,
    dropped: {},
    held: nic.heldFrames,
    busyPs: nic.busyPs,
    heldBack: nic.heldBack,
  },
});

/** @param peers simulated hosts at the other ends of its cables */
export function frameFailures(host: HostLedger, nic: NicLedger, peers: readonly HostLedger[]): string[] {
  const isQuiet = nic.isQuiet && host.pcie.isQuiet && nic.pcie.isQuiet;
  const count = (name: string): number => nic.counters[name] ?? 0;
  const kernel = host.net?.kernel ?? {};
  const programmed = host.net?.programmed ?? {};
  const what = `node ${nic.node}`;
  const filtered = count('filtered') + count('filteredVlans');
  const dropped = filtered + count('wrongLength') + count('missed') + count('disabledDrops');
  return [
    ...unequal(
      `${what}, frames at the MAC`,
      count('arrivals') + nic.heldFrames,
      nic.received['deliveredFrames'] ?? 0,
    ),
    ...unequal(`${what}, frames taken or dropped`, count('accepted') + dropped, count('arrivals')),
    ...unequal(
      `${what}, frames taken`,
      count('delivered') + count('released') + count('droppedByReset') + nic.bufferedFrames,
      count('accepted'),
    ),
    ...behind(`${what}, frames at the driver`, kernel['framesReceived'] ?? 0, count('delivered'), false),
    ...behind(
      `${what}, frames of the ring`,
      count('transmitFrames') - count('programmedFrames'),
      kernel['framesSent'] ?? 0,
      false,
    ),
    ...behind(`${what}, frames by hand`, programmed['framesReceived'] ?? 0, count('released'), false),
    ...(peers.length === 0
      ? []
      : behind(
          `${what}, bytes to programs`,
          kernel['copiedOutBytes'] ?? 0,
          sumOf(peers.map(({ net }) => net?.kernel['copiedInBytes'] ?? 0)),
          false,
        )),
    ...wordFailures(host, nic, isQuiet),
  ];
}

/**
 * Words moved by cores and by the DMA controller equal those that the packet buffer has seen; the answer to one load of
 * every core and of the controller may be in flight.
 */
function wordFailures(host: HostLedger, nic: NicLedger, isQuiet: boolean): string[] {
  if (!isQuiet) return [];
  const { programmed = {}, systemDma } = host.net ?? {};
  const byHand = (programmed['storedBytes'] ?? 0) + (programmed['loadedBytes'] ?? 0);
  const moved = byHand + (systemDma?.words ?? 0) * wordBytes;
  const atBuffer = (nic.counters['bufferWriteBytes'] ?? 0) + (nic.counters['bufferReadBytes'] ?? 0);
  const underWay = atBuffer - moved;
  return underWay >= 0 && underWay <= wordBytes * (host.cores.length + 1)
    ? []
    : [`node ${nic.node}: ${atBuffer} bytes at the packet buffer, ${moved} moved by software`];
}
