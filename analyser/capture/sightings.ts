/**
 * Tells packets that a capture has seen at several places, such as the two ends of a cable or the devices of a host, from packets that
 * were sent several times. A packet counts where it was seen first.
 *
 * Two sightings are one packet if their bytes agree, but for what a switch may change, and their places differ. Packets that are
 * seen twice at one place were sent twice. Of two captures that were merged and have the same name and direction, no packet
 * can be the same: a packet leaves its sender once.
 */

/** A place at which a capture saw packets. */
export interface Place {
  /** Number of the interface in the file, and its name; empty for none. */
  readonly interface: number;
  readonly name: string;
  /** The device, in a capture of all devices of a host. */
  readonly device: number;
  readonly direction: 'unknown' | 'inbound' | 'outbound';
}

/** Packets that are remembered; and of those that look the same, how many. */
const REMEMBERED_MAX = 65_536;
const SAME_MAX = 16;
/** Places at which one packet is found again. */
const PLACES_MAX = 64;

/** A packet that was seen, and what is kept of it. */
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
  /** The capture is of two places that it does not tell apart. */
  isTwoEnded = false;
  readonly #byKey = new Map<string, Sighting<Kept>[]>();
  /** In a circle, the oldest is forgotten. */
  readonly #remembered: Sighting<Kept>[] = [];
  #next = 0;

  /** @returns the packet, of which `place` is the last, and perhaps not the first, place */
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
      // It is the first of those that look the same, or was forgotten before.
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
