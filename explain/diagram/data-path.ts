/**
 * A device as its data path: the positions of blocks, and the arrows between them. Columns go from the PCIe side to the cable's, rows from
 * the post of a request to its completion. Numbers at arrows are the steps of a WRITE from host 0 to host 1.
 *
 *     PCIe ingress
 *     doorbells ──────▶ WQE fetch
 *     DMA read ◀──────  requester ─────────▶ transmitter ══▶ cable
 *     DMA read return   receive WQE fetch    response engine
 *     DMA write ◀──────────────────────────  receiver ◀══ cable
 *                       completion writer
 *                       event writer
 *
 * A card with iWARP also has its TCP transmitter above the transmitter of segments, and its TCP engine below the receiver.
 */

/** Positions of blocks: column and row. */
export const dataPathPlaces: Readonly<Record<string, readonly [column: number, row: number]>> = {
  pcieIngress: [0, 0],
  doorbells: [0, 1],
  dmaRead: [0, 2],
  dmaReadReturn: [0, 3],
  dmaWrite: [0, 4],
  wqeFetch: [1, 1],
  requester: [1, 2],
  receiveWqeFetch: [1, 3],
  completionWriter: [1, 5],
  eventWriter: [1, 6],
  transmitter: [2, 2],
  responseEngine: [2, 3],
  receiver: [2, 4],
};
/** The same for the TCP of a card with iWARP. */
export const tcpPlaces: typeof dataPathPlaces = { tcpTransmitter: [2, 1], tcpEngine: [2, 5] };
export const dataPathRows = 7;

/** Blocks in the order in which a WRITE passes them. */
export const blockOrder: readonly string[] = [
  ...[
    'pcieIngress',
    'doorbells',
    'wqeFetch',
    'requester',
    'dmaRead',
    'dmaReadReturn',
    'transmitter',
    'receiver',
  ],
  ...['dmaWrite', 'responseEngine', 'receiveWqeFetch', 'completionWriter', 'eventWriter'],
];

/**
 * Route of an arrow: `straight` from edge to facing edge; `elbow` through the gap between two columns; `corner` along
 * the row of the source and into the bottom of the target; `under` from the bottom of the source and along the row of
 * the target.
 */
type Route = 'straight' | 'elbow' | 'corner' | 'under';

export interface DataPathArrow {
  readonly from: string;
  readonly to: string;
  readonly route: Route;
  /** Step of a WRITE, at the posting host and at its peer; undefined if a WRITE does not pass the arrow. */
  readonly steps: readonly [poster: number | undefined, peer: number | undefined];
  /** Distance in pixels from the middle of the side that it touches, if two arrows touch the same side. */
  readonly aside?: number;
}

export const dataPathArrows: readonly DataPathArrow[] = [
  { from: 'pcieIngress', to: 'doorbells', route: 'straight', steps: [3, undefined] },
  { from: 'doorbells', to: 'wqeFetch', route: 'straight', steps: [4, undefined] },
  { from: 'wqeFetch', to: 'requester', route: 'straight', steps: [5, undefined] },
  { from: 'requester', to: 'dmaRead', route: 'straight', steps: [6, undefined] },
  { from: 'dmaReadReturn', to: 'requester', route: 'elbow', steps: [7, undefined], aside: 7 },
  { from: 'requester', to: 'transmitter', route: 'straight', steps: [8, undefined] },
  { from: 'receiver', to: 'dmaWrite', route: 'straight', steps: [undefined, 10] },
  { from: 'receiver', to: 'responseEngine', route: 'straight', steps: [undefined, 13] },
  { from: 'responseEngine', to: 'transmitter', route: 'straight', steps: [undefined, 14] },
  { from: 'receiver', to: 'receiveWqeFetch', route: 'elbow', steps: [undefined, undefined], aside: -7 },
  { from: 'receiver', to: 'completionWriter', route: 'under', steps: [16, undefined] },
  { from: 'completionWriter', to: 'dmaWrite', route: 'corner', steps: [17, undefined], aside: 12 },
  { from: 'completionWriter', to: 'eventWriter', route: 'straight', steps: [undefined, undefined] },
  { from: 'eventWriter', to: 'dmaWrite', route: 'corner', steps: [undefined, undefined], aside: -12 },
];
/** Arrows of {@link tcpPlaces}. */
export const tcpArrows: readonly DataPathArrow[] = [
  { from: 'transmitter', to: 'tcpTransmitter', route: 'straight', steps: [undefined, undefined] },
  { from: 'tcpEngine', to: 'receiver', route: 'straight', steps: [undefined, undefined] },
];

/** Steps of a WRITE over the links and in the hosts. */
export const hostSteps = { post: [1, undefined], memory: [19, 12] } as const;
export const linkSteps = {
  toDevice: [2, undefined],
  toHost: [18, 11],
  away: 9,
  back: 15,
} as const;
