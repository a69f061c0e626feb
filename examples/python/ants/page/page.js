// Two worlds from one film: on one side it moves, on the other stands what a reader has held since second 3.
const read = id => JSON.parse(document.getElementById(id).textContent);
const at = id => document.getElementById(id);
const library = URL.createObjectURL(new Blob([read("three")], { type: "text/javascript" }));
const T = await import(library);
const film = read("film");
const frames = await unpack(film.frames), frozen = await unpack(film.frozen.frame);
const dark = matchMedia("(prefers-color-scheme: dark)");

async function unpack(text) {
  const packed = Uint8Array.from(atob(text), letter => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint16Array(await new Response(stream).arrayBuffer());
}

// --- what is drawn ---

const turns = {
  X: new T.Matrix4().makeRotationZ(Math.PI / 2),
  Y: new T.Matrix4(),
  Z: new T.Matrix4().makeRotationX(Math.PI / 2),
};
const ants = film.bodies / film.each;
const colours = Array.from({ length: ants }, (_, ant) => new T.Color().setHSL((ant * 0.618) % 1, 0.6, 0.52));
const grey = new T.Color(0x666b73);

// A world of its own for each side: scene, lights, ground, and one instanced mesh for each form of a shape.
function world() {
  const scene = new T.Scene(), sun = new T.DirectionalLight(0xffffff, 2.3), sets = [];
  sun.position.set(4, -6, 10);
  sun.castShadow = true;
  Object.assign(sun.shadow.camera, { left: -11, right: 11, top: 11, bottom: -11, far: 40 });
  sun.shadow.mapSize.set(2048, 2048);
  scene.add(new T.HemisphereLight(0xffffff, 0x8090a0, 2.1), sun);
  const ground = new T.Mesh(new T.PlaneGeometry(200, 200), new T.MeshLambertMaterial());
  ground.receiveShadow = true;
  const grid = new T.GridHelper(60, 60, 0x8793a1, 0xa9b3bf);
  grid.rotation.x = Math.PI / 2;
  grid.position.z = 0.003;
  grid.material.transparent = true;
  grid.material.opacity = 0.45;
  scene.add(ground, grid);

  const forms = Map.groupBy(film.shapes, shape => [shape.kind, shape.radius, shape.height].join());
  for (const shapes of forms.values()) {
    const [{ kind, radius, height }] = shapes;
    const form = kind === "Sphere" ? new T.SphereGeometry(radius, 28, 20) : new T.CapsuleGeometry(radius, height, 8, 16);
    const mesh = new T.InstancedMesh(form, new T.MeshStandardMaterial({ roughness: 0.55 }), shapes.length);
    mesh.castShadow = mesh.receiveShadow = true;
    mesh.frustumCulled = false;
    scene.add(mesh);
    const locals = shapes.map(shape => new T.Matrix4().fromArray(shape.local).multiply(turns[shape.axis]));
    sets.push({ mesh, shapes, locals });
  }
  const paint = () => {
    scene.background = new T.Color(dark.matches ? 0x161b22 : 0xe9eef4);
    ground.material.color.set(dark.matches ? 0x2a323d : 0xd3dae2);
  };
  dark.addEventListener("change", paint);
  paint();
  return { scene, sets };
}

const position = new T.Vector3(), turn = new T.Quaternion(), one = new T.Vector3(1, 1, 1), pose = new T.Matrix4();

// Puts every shape where its body is in a frame, and the colour of its ant on it: grey for one that lies on its back.
function place({ sets }, numbers, frame, verdict) {
  for (const { mesh, shapes, locals } of sets) {
    shapes.forEach(({ body }, i) => {
      const o = (frame * film.bodies + body) * 7, part = k => numbers[o + k] / 65535;
      position.set(...[0, 1, 2].map(k => film.low[k] + part(k) * (film.high[k] - film.low[k])));
      turn.set(...[3, 4, 5, 6].map(k => part(k) * 2 - 1)).normalize();
      mesh.setMatrixAt(i, pose.compose(position, turn, one).multiply(locals[i]));
      const ant = Math.floor(body / film.each);
      mesh.setColorAt(i, verdict[ant] === "1" ? grey : colours[ant]);
    });
    mesh.instanceMatrix.needsUpdate = mesh.instanceColor.needsUpdate = true;
  }
}

// --- the two views, with one camera ---

let renderer;
try {
  renderer = new T.WebGLRenderer({ antialias: true });
} catch {
  at("trouble").textContent = "This browser has no WebGL, which the picture needs. Try another one, or switch on its 3-D graphics.";
  at("trouble").hidden = false;
}
const camera = new T.PerspectiveCamera(38, 1, 0.1, 200);
camera.up.set(0, 0, 1);
const middle = [0, 1].map(k => (film.low[k] + film.high[k]) / 2);
const reach = Math.max(3, ...[0, 1].map(k => film.high[k] - film.low[k]));
camera.position.set(middle[0] + reach * 0.32, middle[1] - reach * 0.95, reach * 0.56);
const moving = world(), still = world();

if (renderer) {
  renderer.shadowMap.enabled = true;
  renderer.setPixelRatio(Math.min(devicePixelRatio, 2));
  renderer.setScissorTest(true);
  at("world").prepend(renderer.domElement);
  const controls = new T.OrbitControls(camera, renderer.domElement);
  controls.target.set(...middle, 0.2);
  controls.update();
  place(still, frozen, 0, film.verdicts[film.frozen.tick] ?? "");
}

function draw() {
  const { clientWidth: width, clientHeight: height } = at("world"), tall = height >= width;
  const [w, h] = tall ? [width, height / 2] : [width / 2, height];
  const canvas = renderer.domElement;
  if (canvas.clientWidth !== width || canvas.clientHeight !== height) renderer.setSize(width, height);
  camera.aspect = w / h;
  camera.fov = Math.max(36, 2 * Math.atan(0.42 / camera.aspect) * 180 / Math.PI);
  camera.updateProjectionMatrix();
  const views = [[moving, 0, tall ? h : 0], [still, tall ? 0 : w, 0]];
  for (const [{ scene }, x, y] of views) {
    renderer.setViewport(x, y, w, h);
    renderer.setScissor(x, y, w, h);
    renderer.render(scene, camera);
  }
}

// --- time ---

const tick = at("tick"), seconds = n => (n / film.rate).toFixed(2) + " s";
tick.max = film.last;
let playing = true, time = 0, then = performance.now(), shown = -1;

function play(on) {
  playing = on;
  at("play").textContent = on ? "❚❚" : "▶";
  at("play").setAttribute("aria-label", on ? "pause" : "play");
}
at("play").addEventListener("click", () => play(!playing));
tick.addEventListener("input", () => { play(false); time = tick.value / film.rate; });
addEventListener("keydown", event => {
  if (event.key !== " " || event.target === at("play")) return;
  event.preventDefault();
  play(!playing);
});

// The frame of the newest tick that the reader took, at or before this one.
function frameOf(n) {
  let frame = film.ticks.findIndex(taken => taken > n);
  frame = frame < 0 ? film.ticks.length : frame;
  return Math.max(0, frame - 1);
}

function label(id, title, text) {
  const bold = document.createElement("b");
  bold.textContent = title;
  at(id).replaceChildren(bold, text);
}
label("facts", "", film.facts.join("  ·  "));

function show(n) {
  const frame = frameOf(n), taken = film.ticks[frame], verdict = film.verdicts[taken] ?? "";
  place(moving, frames, frame, verdict);
  tick.value = n;
  at("time").textContent = `${seconds(n)}, tick ${n}`;
  const backs = [...verdict].filter(letter => letter === "1").length;
  label("moving", `${ants} ants, moving`, `Grey: on their backs (${backs}), says a writer that is late`);
  const age = n - film.frozen.tick;
  const when = seconds(film.frozen.tick);
  if (age < 0) label("frozen", "A snapshot", `will be taken at ${when}`);
  else label("frozen", `A snapshot, held since ${when}`, `${age} ticks later not a bit of it has changed`);
  for (const { mesh } of still.sets) mesh.visible = age >= 0;
}

window.drawn = 0; // frames, for whoever takes pictures of this page
function next(now) {
  if (playing) time = (time + (now - then) / 1000) % (film.last / film.rate);
  then = now;
  const n = Math.max(1, Math.min(film.last, Math.round(time * film.rate)));
  if (n !== shown) show(shown = n);
  draw();
  window.drawn++;
  requestAnimationFrame(next);
}
if (renderer) requestAnimationFrame(next);
