/**
 * The written part of Perfetto's trace format, as protobufjs reads it: names and numbers of its messages' fields.
 * Source: Perfetto, protos/perfetto/trace/trace_packet.proto and protos/perfetto/trace/track_event/*.proto.
 */
import protobuf from 'protobufjs/light.js';

/** SEQ_INCREMENTAL_STATE_CLEARED and SEQ_NEEDS_INCREMENTAL_STATE of TracePacket.sequence_flags. */
export const sequenceBegins = 1;
export const needsState = 2;

/** TrackEvent.type. */
export const eventTypes = { sliceBegin: 1, sliceEnd: 2, instant: 3, counter: 4 } as const;

/** TrackDescriptor.child_ordering: by `sibling_order_rank`. */
export const orderedExplicitly = 3;
/** CounterDescriptor.unit. */
export const unitCount = 2;

const field = (type: string, id: number) => ({ type, id });
const repeated = (type: string, id: number) => ({ rule: 'repeated', type, id });

const root = protobuf.Root.fromJSON({
  nested: {
    TracePacket: {
      oneofs: { data: { oneof: ['trackEvent', 'trackDescriptor'] } },
      fields: {
        timestamp: field('uint64', 8),
        trustedPacketSequenceId: field('uint32', 10),
        trackEvent: field('TrackEvent', 11),
        internedData: field('InternedData', 12),
        sequenceFlags: field('uint32', 13),
        trackDescriptor: field('TrackDescriptor', 60),
      },
    },
    // A oneof field is present even if it is 0; other fields are not, although levels and values can be 0.
    TrackEvent: {
      oneofs: { counterValueField: { oneof: ['counterValue'] } },
      fields: {
        debugAnnotations: repeated('DebugAnnotation', 4),
        categoryIids: { ...repeated('uint64', 3), options: { packed: false } },
        type: field('int32', 9),
        nameIid: field('uint64', 10),
        trackUuid: field('uint64', 11),
        counterValue: field('int64', 30),
        flowIds: { ...repeated('fixed64', 47), options: { packed: false } },
        terminatingFlowIds: { ...repeated('fixed64', 48), options: { packed: false } },
      },
    },
    DebugAnnotation: {
      oneofs: { value: { oneof: ['intValue', 'stringValue'] } },
      fields: {
        nameIid: field('uint64', 1),
        intValue: field('int64', 4),
        stringValue: field('string', 6),
      },
    },
    InternedData: {
      fields: {
        eventCategories: repeated('InternedName', 1),
        eventNames: repeated('InternedName', 2),
        debugAnnotationNames: repeated('InternedName', 3),
      },
    },
    InternedName: { fields: { iid: field('uint64', 1), name: field('string', 2) } },
    TrackDescriptor: {
      fields: {
        uuid: field('uint64', 1),
        name: field('string', 2),
        process: field('ProcessDescriptor', 3),
        parentUuid: field('uint64', 5),
        counter: field('CounterDescriptor', 8),
        childOrdering: field('int32', 11),
        siblingOrderRank: field('int32', 12),
      },
    },
    ProcessDescriptor: { fields: { pid: field('int32', 1), processName: field('string', 6) } },
    CounterDescriptor: { fields: { unit: field('int32', 3) } },
  },
});

export const tracePacket = root.lookupType('TracePacket');
/** Trace.packet, the field that a trace is a sequence of, length-delimited. */
export const tracePacketTag = (1 << 3) | 2;
