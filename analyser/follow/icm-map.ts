/**
 * ICM as the driver has mapped it: the host page that backs each page of the device's context memory, and the table
 * entry at an ICM address according to INIT_HCA. Source: interface sheet 3.6, 3.10, 4.1.
 */
import { CmptType, icmPageBytes, icmTables, type initHca, type queryDevCap } from '../../abi/index.ts';
import type { Decoded } from '../../base/index.ts';

export type Profile = Decoded<typeof initHca>;
export type Capabilities = Decoded<typeof queryDevCap>;

/** One table of ICM, as INIT_HCA placed it. */
export interface PlacedTable {
  readonly name: string;
  readonly base: number;
  readonly entryBytes: number;
  readonly entries: number;
}

/** 8 GiB: more than any Linux profile requests at once. */
const icmPagesMax = 2 ** 21;

export class IcmMap {
  readonly #hostOf = new Map<number, number>();
  readonly #icmOf = new Map<number, number>();

  get pageCount(): number {
    return this.#hostOf.size;
  }

  isMapped(icmAddress: number): boolean {
    return this.#hostOf.has(Math.floor(icmAddress / icmPageBytes));
  }

  /** Mappings beyond {@link icmPagesMax} pages are not followed. */
  map(icmAddress: number, hostAddress: number, pageCount: number): void {
    if (this.pageCount + pageCount > icmPagesMax) return;
    for (let page = 0; page < pageCount; page++) {
      const icmPage = Math.floor(icmAddress / icmPageBytes) + page;
      const hostPage = Math.floor(hostAddress / icmPageBytes) + page;
      this.#hostOf.set(icmPage, hostPage);
      this.#icmOf.set(hostPage, icmPage);
    }
  }

  unmap(icmAddress: number, pageCount: number): void {
    for (const icmPage of this.#mappedPages(icmAddress, pageCount)) {
      this.#icmOf.delete(this.#hostOf.get(icmPage)!);
      this.#hostOf.delete(icmPage);
    }
  }

  /** Whether any of these pages is mapped. */
  isAnyMapped(icmAddress: number, pageCount: number): boolean {
    return !this.#mappedPages(icmAddress, pageCount).next().done;
  }

  /** Visits the mapped pages of a range: a guest may name four billion pages. */
  *#mappedPages(icmAddress: number, pageCount: number): Generator<number, void> {
    const first = Math.floor(icmAddress / icmPageBytes);
    if (pageCount > this.#hostOf.size) {
      for (const page of [...this.#hostOf.keys()]) if (page >= first && page < first + pageCount) yield page;
    } else for (let page = first; page < first + pageCount; page++) if (this.#hostOf.has(page)) yield page;
  }

  clear(): void {
    this.#hostOf.clear();
    this.#icmOf.clear();
  }

  /** Bus address that backs an ICM address, or -1. */
  hostAddressOf(icmAddress: number): number {
    const page = this.#hostOf.get(Math.floor(icmAddress / icmPageBytes));
    return page === undefined ? -1 : page * icmPageBytes + (icmAddress % icmPageBytes);
  }

  /** ICM address of a bus address, or -1 if no ICM page lies there. */
  icmAddressOf(hostAddress: number): number {
    const page = this.#icmOf.get(Math.floor(hostAddress / icmPageBytes));
    return page === undefined ? -1 : page * icmPageBytes + (hostAddress % icmPageBytes);
  }
}

const bytesOr = (given: number | undefined, preset: number): number =>
  given === undefined || given === 0 ? preset : given;

/** Whether `auxc` is the table of TCP connections, which have numbers of their own (reference/iwarp-interface.md). */
export const hasTcpConnections = (profile: Profile | undefined): boolean =>
  profile !== undefined && profile.logTcpConnections > 0;

/** The ICM tables in which each QP has an entry of its number. */
export const tablesOfQps = (profile: Profile | undefined): readonly string[] =>
  hasTcpConnections(profile) ? ['QPC', 'ALTC'] : ['QPC', 'AUXC', 'ALTC'];

/** The tables in the order of the sheet; entry sizes from QUERY_DEV_CAP, or this project's if QUERY_DEV_CAP was not seen. */
export function placedTables(profile: Profile, capabilities: Capabilities | undefined): PlacedTable[] {
  const size = (name: keyof typeof icmTables, given: number | undefined): number =>
    bytesOr(given, icmTables[name].entryBytes);
  const row = (name: string, base: bigint, entryBytes: number, entries: number): PlacedTable => ({
    name,
    base: Number(base),
    entryBytes,
    entries,
  });
  const qps = 2 ** profile.logQps;
  return [
    row('QPC', profile.qpcBase, size('qpc', capabilities?.qpcEntryBytes), qps),
    row(
      'AUXC',
      profile.auxcBase,
      size('auxc', capabilities?.auxcEntryBytes),
      hasTcpConnections(profile) ? 2 ** profile.logTcpConnections : qps,
    ),
    row('ALTC', profile.altcBase, size('altc', capabilities?.altcEntryBytes), qps),
    row(
      'RDMARC',
      profile.rdmarcBase,
      size('rdmarc', capabilities?.rdmarcEntryBytes),
      qps * 2 ** profile.logRdmarcPerQp,
    ),
    row('SRQC', profile.srqcBase, size('srqc', capabilities?.srqcEntryBytes), 2 ** profile.logSrqs),
    row('CQC', profile.cqcBase, size('cqc', capabilities?.cqcEntryBytes), 2 ** profile.logCqs),
    row('EQC', profile.eqcBase, size('eqc', capabilities?.eqcEntryBytes), 2 ** profile.logEqs),
    row(
      'cMPT',
      profile.cmptBase,
      size('cmpt', capabilities?.cmptEntryBytes),
      Object.keys(CmptType).length * 2 ** 24,
    ),
    row('dMPT', profile.dmptBase, size('dmpt', capabilities?.dmptEntryBytes), 2 ** profile.logDmpts),
    row('MTT', profile.mttBase, size('mtt', capabilities?.mttEntryBytes), Number.POSITIVE_INFINITY),
    profile.deviceManagedSteering === 1
      ? row(
          'flow steering',
          profile.flowSteeringBase,
          2 ** profile.logFlowSteeringEntryBytes,
          2 ** profile.logFlowSteeringEntries,
        )
      : row('MCG', profile.mcgBase, 2 ** profile.logMcgEntryBytes, 2 ** profile.logMcgEntries),
  ];
}

/** The table whose entry lies at an ICM address: the last one that begins at or before it. */
export function tableAt(tables: readonly PlacedTable[], icmAddress: number): PlacedTable | undefined {
  let found: PlacedTable | undefined;
  for (const table of tables) {
    if (icmAddress < table.base || icmAddress >= table.base + table.entries * table.entryBytes) continue;
    if (found === undefined || table.base > found.base) found = table;
  }
  return found;
}
