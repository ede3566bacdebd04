// A picture of plot_neighbourhood() as a page: drag to move, wheel to zoom, a
// double click to go back; what is under the pointer says what it is; a click
// on a point leaves its neighbours and edges, and another brings all back.
// Points and letters keep their size, so that zooming in gives labels room.
HTMLWidgets.widget({
  name: "neighbourhood",
  type: "output",
  factory: function(el, width, height) {
    const svg_space = "http://www.w3.org/2000/svg";
    let drawn = null;

    function make(parent, tag, attributes, text) {
      const part = document.createElementNS(svg_space, tag);
      for (const name in attributes) part.setAttribute(name, attributes[name]);
      if (text !== undefined) part.textContent = text;
      parent.appendChild(part);
      return part;
    }

    function box(parent, style, text) {
      const part = document.createElement("div");
      part.style.cssText = style;
      if (text !== undefined) part.textContent = text;
      parent.appendChild(part);
      return part;
    }

    // Outlines about 0, of about the same area.
    function outline(shape, r) {
      const a = 0.89 * r, d = 1.25 * r;
      if (shape === "square") return `M${-a},${-a}H${a}V${a}H${-a}Z`;
      if (shape === "diamond") return `M0,${-d}L${d},0L0,${d}L${-d},0Z`;
      if (shape === "triangle") return `M0,${-d}L${d},${0.75 * d}H${-d}Z`;
      if (shape === "triangle down") return `M0,${d}L${d},${-0.75 * d}H${-d}Z`;
      return `M${-r},0A${r},${r} 0 1 0 ${r},0A${r},${r} 0 1 0 ${-r},0Z`;
    }

    function draw_legend(panel, x) {
      const title = "font-weight:600;margin:8px 0 3px 0;white-space:pre-line";
      if (x.scale) {
        box(panel, title, x.scale.title);
        const bar = box(panel, "display:flex;align-items:stretch;height:96px");
        box(bar, "width:14px;border:1px solid #666;background:linear-gradient(" +
          "to top," + x.scale.colours.join(",") + ")");
        const ticks = box(bar, "display:flex;flex-direction:column;" +
          "justify-content:space-between;margin-left:5px");
        [x.scale.limit, 0, -x.scale.limit].forEach(v => box(ticks, "", String(v)));
      }
      x.legend.forEach(part => {
        if (part.title) box(panel, title, part.title);
        part.entries.forEach(entry => {
          const row = box(panel, "display:flex;align-items:center;margin:2px 0");
          const key = make(row, "svg", {width: 30, height: 16});
          key.style.flex = "none";
          if (entry.line) {
            make(key, "line", {x1: 1, y1: 8, x2: 29, y2: 8,
              stroke: entry.colour, "stroke-width": entry.width,
              "stroke-dasharray": entry.dash || "none"});
          } else {
            make(key, "path", {d: outline(entry.shape, 5.5),
              transform: "translate(15,8)", fill: entry.fill, stroke: "#404040"});
          }
          box(row, "margin-left:4px", entry.label);
        });
      });
    }

    function render(x) {
      el.textContent = "";
      el.style.cssText += ";position:relative;display:flex;background:white;" +
        "font:12px sans-serif;color:#222;overflow:hidden";
      const svg = make(el, "svg", {role: "img", "aria-label": x.title});
      svg.style.cssText = "flex:1;min-width:0;height:100%;cursor:grab;" +
        "touch-action:none;user-select:none";
      const panel = box(el, "flex:none;width:" + (x.legend_width || 130) +
        "px;padding:4px 8px;overflow:auto;box-sizing:border-box");
      panel.className = "legend";
      draw_legend(panel, x);
      if (x.caption) {
        box(el, "position:absolute;left:8px;bottom:4px;color:#555;" +
          "pointer-events:none", x.caption);
      }
      const tip = box(el, "position:absolute;display:none;background:#fffffff2;" +
        "border:1px solid #888;border-radius:3px;padding:4px 7px;" +
        "pointer-events:none;white-space:pre-line;z-index:2;" +
        "box-shadow:0 1px 4px #0003");
      tip.className = "tip";

      const n = x.points.x.length, m = x.edges.from.length;
      const under = make(svg, "g", {}), over = make(svg, "g", {});
      const lines = [], hits = [], marks = [], names = [], below = [];
      let chosen = null, zoom = 1, left = 0, top = 0;

      const home = function() {
        const w = svg.clientWidth || width, h = svg.clientHeight || height;
        const span = v => [Math.min(...v), Math.max(...v)];
        const [x0, x1] = span(x.points.x), [y0, y1] = span(x.points.y);
        zoom = Math.min((w - 120) / Math.max(x1 - x0, 0.5),
          (h - 70) / Math.max(y1 - y0, 0.5));
        left = w / 2 - zoom * (x0 + x1) / 2;
        top = h / 2 + zoom * (y0 + y1) / 2;
      };
      const at = i => [left + zoom * x.points.x[i], top - zoom * x.points.y[i]];

      function place() {
        for (let e = 0; e < m; e++) {
          const [a, b] = at(x.edges.from[e]), [c, d] = at(x.edges.to[e]);
          [lines[e], hits[e]].forEach(line => {
            line.setAttribute("x1", a); line.setAttribute("y1", b);
            line.setAttribute("x2", c); line.setAttribute("y2", d);
          });
        }
        for (let i = 0; i < n; i++) {
          const [a, b] = at(i);
          marks[i].setAttribute("transform", `translate(${a},${b})`);
          names[i].setAttribute("x", a);
          const off = x.points.focus[i] ? 15 : 10;
          names[i].setAttribute("y", below[i] ? b + off + 10 : b - off);
        }
      }

      // Above its point, or below where that meets fewer of the others, which
      // points count as, too.
      function choose_sides() {
        const half = i => (x.points.focus[i] ? 4.3 : 3.3) *
          x.points.label[i].length;
        const taken = [];
        for (let i = 0; i < n; i++) taken.push([...at(i), 7, 7]);
        const meets = spot => taken.filter(other =>
          Math.abs(spot[0] - other[0]) < spot[2] + other[2] &&
          Math.abs(spot[1] - other[1]) < spot[3] + other[3]).length;
        for (let i = 0; i < n; i++) {
          const [a, b] = at(i), off = x.points.focus[i] ? 19 : 14;
          const up = [a, b - off, half(i), 6], down = [a, b + off, half(i), 6];
          below[i] = meets(down) < meets(up);
          taken.push(below[i] ? down : up);
        }
      }

      function show(point) {
        chosen = point;
        const near = new Set();
        for (let e = 0; e < m; e++) {
          const own = point === null || x.edges.from[e] === point ||
            x.edges.to[e] === point;
          if (own) { near.add(x.edges.from[e]); near.add(x.edges.to[e]); }
          lines[e].style.opacity = own ? (point === null ? 0.7 : 1) : 0.08;
        }
        for (let i = 0; i < n; i++) {
          const seen = point === null || i === point || near.has(i);
          marks[i].style.opacity = names[i].style.opacity = seen ? 1 : 0.12;
        }
      }

      function tell(part, text) {
        part.addEventListener("pointermove", event => {
          const frame = el.getBoundingClientRect();
          const a = event.clientX - frame.left, b = event.clientY - frame.top;
          tip.textContent = text;
          tip.style.display = "block";
          tip.style.left = Math.min(a + 14, frame.width - tip.offsetWidth - 4) + "px";
          tip.style.top = Math.max(b - tip.offsetHeight - 8, 2) + "px";
        });
        part.addEventListener("pointerleave", () => tip.style.display = "none");
      }

      for (let e = 0; e < m; e++) {
        lines.push(make(under, "line", {stroke: x.edges.colour[e],
          "stroke-width": x.edges.width[e],
          "stroke-dasharray": x.edges.dash[e] || "none"}));
        hits.push(make(under, "line", {stroke: "transparent", "stroke-width": 9}));
        tell(hits[e], x.edges.text[e]);
      }
      for (let i = 0; i < n; i++) {
        const focus = x.points.focus[i];
        marks.push(make(over, "path", {
          d: outline(x.points.shape[i], focus ? 10 : 6.5),
          fill: x.points.fill[i], stroke: focus ? "#000" : "#404040",
          "stroke-width": focus ? 2.5 : 1, tabindex: 0, role: "button",
          "aria-label": x.points.label[i], class: "point"}));
        marks[i].style.cursor = "pointer";
        tell(marks[i], x.points.text[i]);
        const choose = () => show(chosen === i ? null : i);
        marks[i].addEventListener("click", event => {
          event.stopPropagation();
          if (!moved) choose();
        });
        marks[i].addEventListener("keydown", event => {
          if (event.key === "Enter" || event.key === " ") {
            event.preventDefault();
            choose();
          }
        });
      }
      for (let i = 0; i < n; i++) {
        names.push(make(over, "text", {"text-anchor": "middle",
          "font-size": x.points.focus[i] ? 14 : 11,
          "font-weight": x.points.focus[i] ? 700 : 400, fill: "#222",
          stroke: "white", "stroke-width": 3, "paint-order": "stroke",
          "stroke-linejoin": "round"}, x.points.label[i]));
        names[i].style.pointerEvents = "none";
      }

      let held = null, moved = false;
      svg.addEventListener("pointerdown", event => {
        held = [event.clientX - left, event.clientY - top];
        moved = false;
      });
      svg.addEventListener("pointermove", event => {
        if (!held || !event.buttons) return;
        const a = event.clientX - held[0], b = event.clientY - held[1];
        if (!moved && Math.hypot(a - left, b - top) < 4) return;
        moved = true;
        left = a;
        top = b;
        place();
      });
      svg.addEventListener("pointerup", () => held = null);
      svg.addEventListener("pointerleave", () => held = null);
      svg.addEventListener("click", () => { if (!moved) show(null); });
      svg.addEventListener("dblclick", () => drawn());
      svg.addEventListener("wheel", event => {
        event.preventDefault();
        const frame = svg.getBoundingClientRect();
        const a = event.clientX - frame.left, b = event.clientY - frame.top;
        const by = Math.exp(-0.0015 * event.deltaY);
        left = a - by * (a - left);
        top = b - by * (b - top);
        zoom *= by;
        choose_sides();
        place();
      }, {passive: false});

      drawn = function() { home(); choose_sides(); place(); };
      drawn();
      show(null);
    }

    return {
      renderValue: render,
      resize: function(new_width, new_height) {
        width = new_width;
        height = new_height;
        if (drawn) drawn();
      }
    };
  }
});
