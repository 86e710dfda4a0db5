/** Titles of the scenarios and networks in the menus. */
import type { LabNetwork, ScenarioName } from '../protocol.ts';

export const scenarioTitles: Readonly<Record<ScenarioName, string>> = {
  write: 'WRITE',
  'write-immediate': 'WRITE with immediate',
  read: 'READ',
  send: 'SEND',
  'fetch-add': 'Atomic: fetch and add',
  'compare-swap': 'Atomic: compare and swap',
  inline: 'WRITE inline, two by one doorbell',
  blueflame: 'WRITE inline by BlueFlame',
  events: 'SEND with events: both sides sleep',
  rnr: 'SEND without a receive: RNR NAK, or Terminate',
  lost: 'WRITE whose packet is lost',
  'wrong-key': 'WRITE with a wrong rkey: NAK, or Terminate',
  'page-fault': 'WRITE into a page that is not there',
};

export const networkTitles: Readonly<Record<LabNetwork, string>> = {
  infiniband: 'InfiniBand',
  'roce-v2': 'RoCE v2',
  iwarp: 'iWARP',
};
