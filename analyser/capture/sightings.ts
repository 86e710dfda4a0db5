/**
 * Distinguishes packets captured at several places (the two ends of a cable, the devices of a host) from packets that
 * were sent several times. A packet counts at the place of its first sighting.
 *
 * Two sightings are one packet if their places differ and their bytes agree, except for fields that a switch may
 * change. A packet seen twice at one place was sent twice. Two merged captures with the same name and direction share
 * no packet: a packet leaves its sender once.
 */

/** A place at which a capture saw packets. */
export interface Place {
  /** Number of the interface in the file, and its name; empty if unnamed. */
  readonly interface: number;
  readonly name: string;
  /** The device, if the capture covers all devices of a host. */
  readonly device: number;
  readonly direction: 'unknown' | 'inbound' | 'outbound';
}

/** Greatest number of remembered packets, and of packets that look the same. */
const REMEMBERED_MAX = 65_536;
const SAME_MAX = 16;
/** Greatest number of places at which one packet is recognised. */
const PLACES_MAX = 64;

/** A seen packet, and what is kept of it. */
export class Sighting<Kept> {
  readonly key: string;
  readonly places: Place[];
  kept: Kept | undefined = undefined;

  constructor(key: string, place: Place) {
    this.key = key;
    this.places = [place];
  }
}

export class Sightings<Kept> {
  /** Whether the capture mixes two places without naming them. */
  isTwoEnded = false;
  readonly #byKey = new Map<string, Sighting<Kept>[]>();
  /** A ring: the newest entry replaces the oldest. */
  readonly #remembered: Sighting<Kept>[] = [];
  #next = 0;

  /** @returns the packet, whose last place is `place` */
  see(key: string, place: Place): Sighting<Kept> {
    const known = this.#byKey.get(key);
    const found = known?.find(({ places }) =>
      this.isTwoEnded
        ? places.length === 1
        : places.length < PLACES_MAX && places.every((other) => canShowSame(other, place)),
    );
    if (found !== undefined) {
      found.places.push(place);
      return found;
    }
    const sighting = new Sighting<Kept>(key, place);
    if (known === undefined) this.#byKey.set(key, [sighting]);
    else if (known.push(sighting) > SAME_MAX) known.shift();
    this.#remember(sighting);
    return sighting;
  }

  #remember(sighting: Sighting<Kept>): void {
    const oldest = this.#remembered[this.#next];
    if (oldest !== undefined) {
      const same = this.#byKey.get(oldest.key);
      // It is the first of those that look the same, or its predecessor was forgotten.
      if (same?.[0] === oldest) same.shift();
      if (same?.length === 0) this.#byKey.delete(oldest.key);
    }
    this.#remembered[this.#next] = sighting;
    this.#next = (this.#next + 1) % REMEMBERED_MAX;
  }
}

function canShowSame(one: Place, other: Place): boolean {
  const isSameDirection = one.direction === other.direction;
  if (one.interface === other.interface) return one.device !== other.device || !isSameDirection;
  return !isSameDirection || one.direction === 'unknown' || one.name !== other.name;
}
