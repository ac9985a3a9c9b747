package dev.sexton.client;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.Iterator;
import java.util.Map;

/**
 * Writes JSON: Map, Iterable, CharSequence, Boolean, null, and the numbers of java.lang and java.math with all digits.
 *
 * <p>Other objects need a JSON library; pass the text that it writes.
 */
final class Json {
    private static final int MAX_DEPTH = 1000;

    private Json() {}

    static String write(Object value) {
        StringBuilder out = new StringBuilder();
        append(out, value, 0);
        return out.toString();
    }

    /** Whether a text is one object by its brackets and quotes, so that it can stand in another one; PostgreSQL parses it. */
    static boolean isOneObject(String text) {
        String json = text.strip();
        boolean quoted = false;
        int depth = 0;
        for (int i = 0; i < json.length(); i++) {
            char c = json.charAt(i);
            if (quoted && c == '\\') {
                i++;
            } else if (c == '"') {
                quoted = !quoted;
            } else if (!quoted && (c == '{' || c == '[')) {
                depth++;
            } else if (!quoted && (c == '}' || c == ']') && --depth <= 0 && i < json.length() - 1) {
                return false;
            }
        }
        return json.startsWith("{") && json.endsWith("}") && depth == 0 && !quoted;
    }

    private static void append(StringBuilder out, Object value, int depth) {
        if (depth > MAX_DEPTH) {
            throw new IllegalArgumentException("the value is nested too deep, or contains itself");
        }
        if (value == null || value instanceof Boolean || isExact(value)) {
            out.append(value);
        } else if (value instanceof Float || value instanceof Double) {
            if (!Double.isFinite(((Number) value).doubleValue())) {
                throw new IllegalArgumentException(value + " is not JSON");
            }
            out.append(value);
        } else if (value instanceof CharSequence text) {
            quote(out, text);
        } else if (value instanceof Map<?, ?> map) {
            String separator = "{";
            for (Map.Entry<?, ?> entry : map.entrySet()) {
                out.append(separator);
                quote(out, String.valueOf(entry.getKey()));
                out.append(':');
                append(out, entry.getValue(), depth + 1);
                separator = ",";
            }
            out.append(map.isEmpty() ? "{}" : "}");
        } else if (value instanceof Iterable<?> items) {
            out.append('[');
            for (Iterator<?> each = items.iterator(); each.hasNext(); ) {
                append(out, each.next(), depth + 1);
                out.append(each.hasNext() ? "," : "");
            }
            out.append(']');
        } else {
            throw new IllegalArgumentException(
                    value.getClass().getName() + " is not JSON; pass the text that a JSON library writes");
        }
    }

    private static boolean isExact(Object value) {
        return value instanceof Byte || value instanceof Short || value instanceof Integer || value instanceof Long
                || value instanceof BigInteger || value instanceof BigDecimal;
    }

    private static void quote(StringBuilder out, CharSequence text) {
        out.append('"');
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            if (c == '"' || c == '\\') {
                out.append('\\').append(c);
            } else if (c < ' ') {
                out.append(String.format("\\u%04x", (int) c));
            } else {
                out.append(c);
            }
        }
        out.append('"');
    }
}
