/** The cable and the PCIe links, by direction. */

import type { NodeReport } from '../../machine/index.ts';
import { lengthsOf } from '../workloads/index.ts';
import { testShareOf } from './blocks.ts';
import {
  type CableRow,
  hostText,
  isEthernet,
  isIwarp,
  isSwitch,
  less,
  type Measured,
  messagesOf,
  more,
  type Resource,
  type Turn,
  trafficOf,
  turnsOfCable,
} from './measured.ts';

const pcieTurn = more('pcie.link.generation', 'pcie.link.lanes');
const wireTurn = more('wire.speed', 'wire.lanes', '--mtu');
const ethernetTurn = more('ethernet.gigabitsPerSecond', 'ethernet.mtuBytes', '--mtu');
/** Segments have no path MTU, and headers that a port's MTU does not change. */
const iwarpTurn = more('ethernet.gigabitsPerSecond', 'ethernet.mtuBytes');

export function linkResources(measured: Measured): Resource[] {
  const { config, figures, durationPs } = measured;
  const cables = figures.wire.map(
    (row): Resource => ({
      name: cableName(measured, row),
      kind: 'server',
      share: row.busyPs / durationPs,
      turn: turnsOfCable(
        measured,
        row,
        isIwarp(config) ? iwarpTurn : isEthernet(config) ? ethernetTurn : wireTurn,
      ),
    }),
  );
  const slots = figures.nodes.flatMap((report, node) =>
    (['toDevice', 'toHost'] as const).map((direction): Resource => {
      const { pcie } = report;
      const share = (pcie[direction].busyPs * testShareOf(pcie[direction])) / durationPs;
      const name = `PCIe link of ${hostText(measured, node)} ${direction === 'toHost' ? 'to the host' : 'to the device'}`;
      const turn = [
        ...pcieTurn,
        ...payloadTurns(measured, direction),
        ...(direction === 'toDevice' ? prefetchTurns(measured, report, node) : []),
      ];
      return { name, kind: 'server', share, turn };
    }),
  );
  return [...cables, ...slots];
}

/** Two hosts are named without the word for the second one; switches with the port that sends. */
function cableName(measured: Measured, { from, to, fromPort }: CableRow): string {
  if (!isSwitch(measured, from) && !isSwitch(measured, to)) {
    const port = fromPort === undefined ? '' : `, port ${fromPort}`;
    return `cable from ${hostText(measured, from)} to ${measured.hosts[to]}${port}`;
  }
  const end = (node: number): string =>
    isSwitch(measured, node) ? `switch ${node}` : hostText(measured, node);
  const isFirst = fromPort === undefined && !isSwitch(measured, from);
  return `cable from ${end(from)}${isFirst ? '' : ` port ${fromPort ?? 1}`} to ${end(to)}`;
}

/**
 * Bounds the payload of a TLP: a write by the root complex's limit, a completion by the size that the root complex
 * builds, and both by the link. Undefined if no message fills a TLP.
 */
function payloadTurns({ config, args }: Measured, direction: 'toDevice' | 'toHost'): Turn[] {
  const { link, enumeration, rootComplex } = config.pcie;
  const own =
    direction === 'toHost'
      ? (['pcie.enumeration.maxPayloadBytes', enumeration.maxPayloadBytes] as const)
      : (['pcie.rootComplex.completionCombineBytes', rootComplex.completionCombineBytes] as const);
  const [name, bytes] = own;
  const linkName = 'pcie.link.maxPayloadBytes';
  const longest = Math.max(...lengthsOf(args).map((length) => length.bytes));
  if (longest <= Math.min(bytes, link.maxPayloadBytes)) return [];
  if (bytes < link.maxPayloadBytes) return more(name);
  if (bytes > link.maxPayloadBytes) return more(linkName);
  const because = `Both are ${bytes} bytes, and the lesser of them bounds a payload.`;
  return [{ what: name, towards: 'more', along: [{ what: linkName, towards: 'more', because }] }];
}

/** Share of the link's bytes from which on fetched WQEs that are never executed are named. */
const muchShare = 0.2;

/** A fetch of send WQEs reads as many as it may, whether or not they are posted. */
function prefetchTurns(measured: Measured, { hca, pcie }: NodeReport, node: number): Turn[] {
  const { config, args } = measured;
  const fetches = hca.caches['wqe']?.misses ?? 0;
  if (!trafficOf(measured).hasOneService || fetches === 0 || (node === 1 && args.isBidirectional !== true))
    return [];
  const ways = args.isBidirectional === true ? 2 : 1;
  const usedShare = messagesOf(measured) / ways / (fetches * config.hca.wqePrefetchCount);
  const readBytes = pcie.toDevice.classes['wqeRead']?.bytes ?? 0;
  const isMuch = (1 - usedShare) * readBytes > muchShare * pcie.toDevice.total.bytes;
  return isMuch ? less('hca.wqePrefetchCount') : [];
}
