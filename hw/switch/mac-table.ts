/**
 * The stations that a switch has learned: for each VLAN and MAC the port by which the station last sent (IEEE 802.1Q, 8.7 and 8.8). A
 * station that has been silent for the ageing time is forgotten; when the table is full, no other is learned.
 */
import type { Picoseconds } from '../../base/index.ts';
import type { BlockState } from '../../sim/index.ts';

interface Station {
  port: number;
  seenPs: Picoseconds;
}

export class MacTable {
  readonly #capacity: number;
  readonly #ageingPs: Picoseconds;
  readonly #byVlan = new Map<number, Map<number, Station>>();
  #count = 0;
  /** Stations that were not learned, since the table was full. */
  overflowCount = 0;

  constructor(capacity: number, ageingPs: Picoseconds) {
    this.#capacity = capacity;
    this.#ageingPs = ageingPs;
  }

  /** A frame of a station has come by a port, from 1. */
  learn(vlan: number, mac: number, port: number, nowPs: Picoseconds): void {
    const stations = this.#byVlan.get(vlan) ?? new Map<number, Station>();
    const station = stations.get(mac);
    if (station !== undefined) {
      station.port = port;
      station.seenPs = nowPs;
      return;
    }
    if (this.#count === this.#capacity) this.#forgetSilent(nowPs);
    if (this.#count === this.#capacity) {
      this.overflowCount++;
      return;
    }
    stations.set(mac, { port, seenPs: nowPs });
    this.#byVlan.set(vlan, stations);
    this.#count++;
  }

  /** The port of a station; undefined for one that is not known. */
  portOf(vlan: number, mac: number, nowPs: Picoseconds): number | undefined {
    const station = this.#byVlan.get(vlan)?.get(mac);
    return station === undefined || this.#isSilent(station, nowPs) ? undefined : station.port;
  }

  inspect(): BlockState {
    const stations = [...this.#byVlan].flatMap(([vlan, byMac]) =>
      [...byMac].map(([mac, { port }]) => [vlan, mac, port]),
    );
    return { stations: stations.toSorted((left, right) => left[0]! - right[0]! || left[1]! - right[1]!) };
  }

  /** Handles a new epoch: see TimeKeeper. */
  rebase(ps: Picoseconds): void {
    for (const byMac of this.#byVlan.values()) for (const station of byMac.values()) station.seenPs -= ps;
  }

  #isSilent({ seenPs }: Station, nowPs: Picoseconds): boolean {
    return nowPs - seenPs >= this.#ageingPs;
  }

  #forgetSilent(nowPs: Picoseconds): void {
    for (const byMac of this.#byVlan.values())
      for (const [mac, station] of byMac)
        if (this.#isSilent(station, nowPs)) {
          byMac.delete(mac);
          this.#count--;
        }
  }
}
